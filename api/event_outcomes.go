package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/outcome"
	"github.com/messagehub/messagehub/domain/publish"
)

// outcomesDocument is the JSON response to a sender that waits until its events were delivered to
// subscriptions.
type outcomesDocument struct {
	counts
	Outcomes []outcomeDocument `json:"outcomes"`
}

type outcomeDocument struct {
	Event        int    `json:"event"` // index of the event in the request
	Subscription string `json:"subscription"`
	State        string `json:"state"`
	Status       int    `json:"status,omitempty"`
}

// beginWait starts to wait for the outcomes of events. It returns nil if their sender need not
// wait: no subscription to the events is sync, the sender prefers not to wait, or it sent too many
// events.
func (s *Server) beginWait(r *http.Request, stream domain.StreamName, messages []domain.Message, awaited []publish.AwaitedMessage) *outcome.Wait {
	if s.opts.Outcomes == nil || len(awaited) == 0 || len(messages) > outcome.MaxMessages || prefersAsync(r.Header) {
		return nil
	}
	return s.opts.Outcomes.Begin(r.Context(), stream, messages, awaited)
}

// prefersAsync reports whether a request contains the preference respond-async (RFC 7240).
func prefersAsync(h http.Header) bool {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(preference, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// outcomes waits until all outcomes of events are known, the maximum wait has passed, or the server
// drains. It returns the outcomes.
func (s *Server) outcomes(ctx context.Context, wait *outcome.Wait) []outcome.Outcome {
	paceOf(ctx).extendDeadline(outcome.MaxWait)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)() //nolint:contextcheck // it is the server's
	return wait.Outcomes(waiting)
}

// writeOutcomes responds with 200, or with 202 if some outcomes are not yet known.
func writeOutcomes(w http.ResponseWriter, answer counts, all []outcome.Outcome) {
	document, status := outcomesDocument{answer, make([]outcomeDocument, len(all))}, http.StatusOK
	for i, o := range all {
		document.Outcomes[i] = outcomeDocument{o.Message, o.Subscription.String(), string(o.State), o.Status}
		if o.State == outcome.Pending {
			status = http.StatusAccepted
		}
	}
	writeJSON(w, status, document)
}

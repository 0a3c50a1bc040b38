package api

import (
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/api/internal/objectjson"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

const objectEventsPath = "/v1/object-events"

// objectEventsDocument is the JSON response to object events.
type objectEventsDocument struct {
	counts
	Ignored int            `json:"ignored"`
	TooOld  int            `json:"tooOld,omitempty"`
	Refused []refusedEvent `json:"refused"`
}

// A refusedEvent is the JSON of an event that can never be stored.
type refusedEvent struct {
	Index   int    `json:"index"`
	Pointer string `json:"pointer"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
}

// postObjectEvents stores the events of a request, each independently. It also responds to the
// validation handshake of Event Grid.
func (s *Server) postObjectEvents(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	sent, release, err := s.readObjectEvents(w, r)
	defer release()
	if err != nil {
		return err
	}
	if sent.Handshake != nil && sent.Count == 1 {
		return answerHandshake(w, sent)
	}
	if err := s.limitEvents(w, r, sent.Count); err != nil {
		return err
	}
	reports := make([]ledger.Report, len(sent.Events))
	for i := range sent.Events {
		reports[i] = ledger.Report{Name: sent.Events[i].Name, ObjectEvent: sent.Events[i].ObjectEvent}
	}
	recordOf(r.Context()).linkTo(sent.Causes...)
	done := s.opts.Objects.Ingest(r.Context(), reports)
	answer := objectEventsDocument{counts: counts{Accepted: done.Stored, Duplicates: done.Duplicates}, Ignored: sent.Ignored, TooOld: done.TooOld}
	answer.Refused = refusedEvents(sent, done.Failures)
	s.noteObjectEvents(r, sent, &answer)
	if failed := slices.DeleteFunc(slices.Clone(done.Failures), func(f ledger.Failure) bool { return f.IsInvalid() }); len(failed) > 0 {
		return unstoredEvents(r, failed, answer.counts)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// readObjectEvents reads the events of a request. It reserves memory for the body until release is
// called.
func (s *Server) readObjectEvents(w http.ResponseWriter, r *http.Request) (sent *objectjson.Events, release func(), err error) {
	release = func() {}
	isBinary, err := objectEventsMode(w, r)
	if err != nil {
		return nil, release, err
	}
	text, release, err := s.readBody(w, r, s.opts.Limits.RequestBody)
	if err != nil {
		return nil, release, err
	}
	options := objectjson.Options{MaxEvents: s.opts.Limits.Events}
	if isBinary {
		sent, err = objectjson.ParseBinary(r.Header, text, options)
	} else {
		sent, err = objectjson.Parse(text, options)
	}
	if many, ok := errors.AsType[*objectjson.TooManyError](err); ok {
		return nil, release, refuse(tooManyEvents, "Nothing was stored: there are %v. Send them in several requests.", many)
	}
	if errors.Is(err, objectjson.ErrNotJSON) {
		return nil, release, &problemError{problem: notJSON, detail: "Nothing was stored: " + err.Error(), cause: err}
	}
	return sent, release, err
}

// objectEventsMode reports whether a request contains an event in the binary mode of CloudEvents.
// It fails if the body is not JSON. It accepts the media type of plain text only from SNS, which
// sends JSON with it.
func objectEventsMode(w http.ResponseWriter, r *http.Request) (isBinary bool, err error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return false, refuse(wrongContentType, "Content-Encoding %q is not accepted; send the body without a content coding.", domain.Shorten(coding))
	}
	contentType := r.Header.Get("Content-Type")
	media, params, _ := mime.ParseMediaType(contentType)
	isJSON := media == "application/json" || media == structuredEvent || media == batchOfEvents || media == "text/plain" && r.Header.Get("X-Amz-Sns-Message-Type") != ""
	if charset, ok := params["charset"]; !isJSON || ok && !strings.EqualFold(charset, "utf-8") {
		accepted := strings.Join([]string{"application/json", structuredEvent, batchOfEvents}, ", ")
		w.Header().Set("Accept-Post", accepted)
		return false, refuse(wrongContentType, "Content-Type %q is not accepted; send %s, in UTF-8.", domain.Shorten(contentType), accepted)
	}
	return media == "application/json" && objectjson.IsBinary(r.Header), nil
}

// answerHandshake responds with the validation code that Event Grid sent.
func answerHandshake(w http.ResponseWriter, sent *objectjson.Events) error {
	if len(sent.Faults) > 0 {
		f := &sent.Faults[0]
		return &problemError{problem: invalid, detail: "The validation event of Event Grid has no code to return.", faults: []bodyFault{{Pointer: f.Pointer, Detail: f.Detail}}}
	}
	writeJSON(w, http.StatusOK, map[string]string{"validationResponse": sent.Handshake.Code})
	return nil
}

// allowObjectEvents responds to the validation request of the CloudEvents webhook specification. It
// allows every origin, because events are stored only if they come with the operator token.
func (s *Server) allowObjectEvents(w http.ResponseWriter, r *http.Request) error {
	const maxOrigin = 255 // in bytes; the limit of a host name
	origin := r.Header.Get("WebHook-Request-Origin")
	if strings.TrimSpace(origin) == "" || len(origin) > maxOrigin {
		return refuse(invalid, "Want the header WebHook-Request-Origin with the name of the sender, up to %d bytes.", maxOrigin)
	}
	h := w.Header()
	h.Set("WebHook-Allowed-Origin", origin)
	h.Set("WebHook-Allowed-Rate", "*")
	h["Allow"] = []string{joinWords([]string{http.MethodOptions, http.MethodPost})}
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return nil
}

// refusedEvents returns the events that can never be stored, in the order of the request.
func refusedEvents(sent *objectjson.Events, failures []ledger.Failure) []refusedEvent {
	refused := make([]refusedEvent, 0, len(sent.Faults))
	for _, f := range sent.Faults {
		refused = append(refused, refusedEvent{f.Index, f.Pointer, f.Reason, f.Detail})
	}
	for i := range failures {
		if f := &failures[i]; f.IsInvalid() {
			refused = append(refused, refusedEvent{Index: sent.Events[f.Event].Index, Reason: string(invalid), Detail: f.Err.Error()})
		}
	}
	slices.SortStableFunc(refused, func(a, b refusedEvent) int { return a.Index - b.Index })
	return refused
}

// noteObjectEvents counts the events of a request, and adds the counts to the request's log line.
func (s *Server) noteObjectEvents(r *http.Request, sent *objectjson.Events, answer *objectEventsDocument) {
	rec := recordOf(r.Context())
	rec.note(slog.Int("accepted", answer.Accepted), slog.Int("duplicates", answer.Duplicates))
	if sent.Ignored > 0 {
		rec.note(slog.Int("ignored", sent.Ignored), slog.Any("ignored_names", sent.IgnoredNames))
	}
	if answer.TooOld > 0 {
		rec.note(slog.Int("too_old", answer.TooOld))
	}
	if n := len(answer.Refused); n > 0 {
		first := &answer.Refused[0]
		rec.note(slog.Int("refused", n), slog.String("first_refused", fmt.Sprintf("%s: %s", first.Pointer, first.Reason)))
	}
	for outcome, n := range map[string]int{"stored": answer.Accepted, "duplicate": answer.Duplicates, "ignored": answer.Ignored, "too-old": answer.TooOld, "refused": len(answer.Refused)} {
		s.metrics.objectEvents.WithLabelValues(outcome).Add(float64(n))
	}
	for i := range answer.Refused {
		s.metrics.objectEventsRefused.WithLabelValues(answer.Refused[i].Reason).Inc()
	}
}

// unstoredEvents returns the problem for a request with events that are possibly not stored. Its
// status is always 503, because senders such as Event Grid repeat a request after a 503.
func unstoredEvents(r *http.Request, failed []ledger.Failure, stored counts) error {
	isFull := func(f ledger.Failure) bool { return f.IsFull() }
	var p *problemError
	if i := slices.IndexFunc(failed, func(f ledger.Failure) bool { return !isFull(f) }); i < 0 {
		p = &problemError{problem: partitionFull, cause: failed[0].Err}
	} else if p = asProblem(r.Context(), failed[i].Err); problems[p.problem].status != http.StatusServiceUnavailable {
		p = &problemError{problem: unavailable, cause: failed[i].Err}
	}
	p.stored = &stored
	if p.problem != partitionFull {
		p.detail = fmt.Sprintf("%d of the events are not stored for certain; the others are, and accepted and duplicates count them. "+
			"Repeat the same request after a pause: that is safe, nothing is stored twice.", len(failed))
	}
	return p
}

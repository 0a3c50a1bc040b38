package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// postDataAvailable stores the events in the body. If any event is invalid, it stores nothing and
// reports the position of every fault.
func (s *Server) postDataAvailable(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	if err := checkContentType(w, r); err != nil {
		return err
	}
	if r.ContentLength > s.opts.Limits.RequestBody {
		return tooLarge(s.opts.Limits.RequestBody)
	}
	body, err := s.openBody(r, http.MaxBytesReader(w, r.Body, s.opts.Limits.RequestBody))
	if err != nil {
		return err
	}
	defer body.close()
	sent, err := decodeEvents(body, s.opts.Limits)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge(s.opts.Limits.RequestBody)
		}
		return err
	}
	rec := recordOf(r.Context())
	rec.note(slog.Int("events", sent.Count))
	rec.describeOperation("announce", tracing.Send, domain.ActorID{})
	rec.describe(tracing.BatchSize.Int(sent.Count))
	if sent.Faults.Total > 0 {
		// The problem also lists faults that only the hub finds, in events that were decoded
		// without faults.
		return s.rejectionProblem(sent, s.opts.Hub.Check(sent.Events))
	}
	if err := checkOrigins(r.Context(), sent); err != nil {
		return err
	}
	if err := s.limitEvents(w, r, sent.Count); err != nil {
		return err
	}
	stored, err := s.ingest(r.Context(), sent.Events)
	if _, ok := errors.AsType[*hub.RejectionError](err); ok {
		return s.rejectionProblem(sent, err)
	}
	if err != nil {
		return unfinishedProblem(r.Context(), sent, stored, err)
	}
	answer := counts{Accepted: stored.Accepted, Duplicates: stored.Duplicates}
	if len(stored.Conflicts) > 0 {
		return conflictProblem(answer, sent, stored.Conflicts)
	}
	writeJSON(w, http.StatusAccepted, answer)
	return nil
}

// ingest passes events to the hub, and counts and logs the result. If it fails, some events may
// nevertheless be stored.
func (s *Server) ingest(ctx context.Context, events []domain.Event) (hub.IngestResult, error) {
	stored, err := s.opts.Hub.Ingest(ctx, events)
	s.metrics.events.AddAccepted(stored.Accepted)
	s.metrics.events.AddKnown(stored.Duplicates, len(stored.Conflicts))
	recordOf(ctx).note(
		slog.Int("accepted", stored.Accepted),
		slog.Int("duplicates", stored.Duplicates),
		slog.Int("conflicts", len(stored.Conflicts)),
	)
	return stored, err
}

// unfinishedProblem returns the problem for a request of which only the events of some recipients
// were stored. The remaining events were refused, or it is unknown whether they were stored. The
// kind of err describes one recipient and not the whole request.
func unfinishedProblem(ctx context.Context, sent *eventjson.Events, stored hub.IngestResult, err error) error {
	r := asProblem(ctx, err)
	if failed, ok := errors.AsType[*hub.UnstoredError](err); ok && (r.problem == invalid || r.problem == damaged) {
		return partlyStored(r, sent, stored, failed)
	}
	if problems[r.problem].retry {
		r.detail = fmt.Sprintf("Not all events are stored for certain: %d are, the others may be. "+
			"Repeat the same request after a pause: that is safe, nothing is stored twice.", stored.Accepted+stored.Duplicates)
	}
	return r
}

// checkContentType accepts only plain JSON. Its text is UTF-8, with or without a charset.
func checkContentType(w http.ResponseWriter, r *http.Request) error {
	const accepted = "application/json"
	if coding := strings.Join(r.Header["Content-Encoding"], ", "); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return refuse(wrongContentType, "Content-Encoding %q is not accepted; send the body without a content coding.", domain.Shorten(coding))
	}
	got := strings.Join(r.Header["Content-Type"], ", ")
	media, params, err := mime.ParseMediaType(got)
	if err != nil || media != accepted {
		w.Header().Set("Accept-Post", accepted)
		if got == "" {
			return refuse(wrongContentType, "The header Content-Type is missing; send %s.", accepted)
		}
		return refuse(wrongContentType, "Content-Type %q is not accepted; send %s.", domain.Shorten(got), accepted)
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return refuse(wrongContentType, "Charset %q is not accepted; JSON is UTF-8.", domain.Shorten(charset))
	}
	return nil
}

func tooLarge(limit int64) error {
	return &problemError{
		problem: bodyTooLarge,
		detail:  fmt.Sprintf("Nothing was stored: the body is larger than %d bytes. Send the events in several requests.", limit),
		close:   true,
	}
}

// rejectionProblem returns the problem for a request of which nothing was stored. It lists the
// faults that the decoder found, the unknown origins of these events and, if err is a
// RejectionError, the faults that the hub found in other events, in the order of the events.
func (s *Server) rejectionProblem(sent *eventjson.Events, err error) error {
	faults, total, problem := faultsOf(sent.Faults.List), sent.Faults.Total, invalid
	groups := s.opts.Hub.Groups()
	for i := range sent.FaultyOrigins {
		if _, err := groups.GroupOf(sent.FaultyOrigins[i].Origin); err != nil {
			faults = append(faults, faultOf(sent.FaultyOrigins[i].Fault(err.Error())))
			total++
		}
	}
	if rejection, ok := errors.AsType[*hub.RejectionError](err); ok {
		for _, f := range rejection.Faults {
			faults = append(faults, faultOf(sent.Fault(f.Index, f.Field, f.Err.Error())))
		}
		total += len(rejection.Faults)
		if sent.Faults.Total == 0 && domain.KindOf(err) == domain.Conflict {
			problem = idConflict
		}
	}
	slices.SortStableFunc(faults, func(a, b bodyFault) int { return a.index - b.index })
	return &problemError{problem: problem, detail: faultsDetail(total), faults: faults[:min(len(faults), maxFaults)]}
}

func faultsDetail(total int) string {
	switch {
	case total == 1:
		return "Nothing was stored, because of the fault in errors. Correct it and send the request again."
	case total <= maxFaults:
		return fmt.Sprintf("Nothing was stored, because of the %d faults in errors. Correct them and send the request again.", total)
	}
	return fmt.Sprintf("Nothing was stored, because of %d faults; errors lists the first %d. Correct them and send the request again.", total, maxFaults)
}

// partlyStored returns the problem for a request of which some events were not stored, and lists
// them. The mailbox of such an event is full or damaged, or an event with the same id and different
// content was stored before.
func partlyStored(r *problemError, sent *eventjson.Events, stored hub.IngestResult, failed *hub.UnstoredError) error {
	r.faults = conflictFaults(sent, stored.Conflicts)
	for _, failure := range failed.Failures {
		detail := "the mailbox of the recipient is damaged"
		if refused, ok := errors.AsType[*domain.Error](failure.Err); ok && domain.KindOf(failure.Err) == domain.Invalid {
			detail = refused.Error()
		}
		for _, index := range failure.Events {
			r.faults = append(r.faults, faultOf(sent.Fault(index, "", detail)))
		}
	}
	slices.SortStableFunc(r.faults, func(a, b bodyFault) int { return a.index - b.index })
	r.stored = &counts{Accepted: stored.Accepted, Duplicates: stored.Duplicates}
	const rest = "errors names them. The others are stored, and accepted and duplicates count them."
	if r.problem == damaged {
		r.detail = fmt.Sprintf("%d of the events are perhaps not stored; %s Repeating the request does not help; give the operator the request id.", len(r.faults), rest)
	} else {
		r.detail = fmt.Sprintf("%d of the events are refused; %s", len(r.faults), rest)
	}
	return r
}

// conflictProblem returns the problem for a request with events whose ids were stored before with
// different content. It lists only these events, because all others are stored.
func conflictProblem(answer counts, sent *eventjson.Events, conflicts []int) error {
	return &problemError{
		problem: alreadyStored,
		detail: fmt.Sprintf("%d of the events differ from events stored before under the same ids; errors names them. "+
			"The others are stored, and accepted and duplicates count them. Give new data a new id.", len(conflicts)),
		faults: conflictFaults(sent, conflicts),
		stored: &answer,
	}
}

func conflictFaults(sent *eventjson.Events, conflicts []int) []bodyFault {
	faults := make([]bodyFault, len(conflicts))
	for i, index := range conflicts {
		faults[i] = faultOf(sent.Fault(index, "id", "stored before with other content"))
	}
	return faults
}

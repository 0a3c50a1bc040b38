package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/internal/cloudevent"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/publish"
)

// Limits and media types of POST /v1/events.
const (
	maxEventBody    = 2 * megabyte // maximum bytes of a request with one event
	maxBatchBody    = 8 * megabyte
	maxBatchEvents  = 1000
	structuredEvent = "application/cloudevents+json"
	batchOfEvents   = "application/cloudevents-batch+json"
)

// requireEvents refuses requests if the hub has no store for events.
func (s *Server) requireEvents(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Events == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// postEvents publishes the CloudEvents of a request. If any event is invalid, it publishes nothing
// and reports the position of every fault.
func (s *Server) postEvents(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "topic")
	if err != nil {
		return err
	}
	topic := domain.DefaultTopic
	if values.Has("topic") {
		topic = values.Get("topic")
	}
	stream, err := domain.ParseTopic(topic)
	if err != nil {
		return err
	}
	messages, isBatch, release, err := s.readEvents(w, r)
	release = sync.OnceFunc(release)
	defer release()
	if err != nil {
		return err
	}
	if err := s.limitEvents(w, r, len(messages)); err != nil {
		return err
	}
	recordOf(r.Context()).linkTo(causesOf(messages)...)
	published, err := s.opts.Events.Publish(r.Context(), stream, messages)
	s.metrics.published.WithLabelValues("accepted").Add(float64(published.Accepted))
	s.metrics.published.WithLabelValues("duplicate").Add(float64(published.Duplicates))
	s.metrics.published.WithLabelValues("conflict").Add(float64(len(published.Conflicts)))
	recordOf(r.Context()).note(slog.Int("accepted", published.Accepted), slog.Int("duplicates", published.Duplicates))
	if err != nil {
		return asPublishProblem(r.Context(), published, err)
	}
	answer := counts{Accepted: published.Accepted, Duplicates: published.Duplicates}
	if len(published.Conflicts) > 0 {
		return differingEvents(answer, published.Conflicts, isBatch)
	}
	wait := s.beginWait(r, stream, messages, published.Awaited)
	if wait == nil {
		writeJSON(w, http.StatusAccepted, answer)
		return nil
	}
	release() // the events are no longer needed during the wait
	writeOutcomes(w, answer, s.outcomes(r.Context(), wait))
	return nil
}

// causesOf returns the spans that are named in the extension traceparent of messages.
func causesOf(messages []domain.Message) (causes []domain.TraceContext) {
	for i := range messages {
		causes = domain.AddCause(causes, messages[i].Attributes["traceparent"], messages[i].Attributes["tracestate"])
	}
	return causes
}

// readEvents reads the events of a request, in any of the modes of CloudEvents. It reserves memory
// for the body until release is called.
func (s *Server) readEvents(w http.ResponseWriter, r *http.Request) (messages []domain.Message, isBatch bool, release func(), err error) {
	release = func() {}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, false, release, refuse(wrongContentType, "Content-Encoding %q is not accepted; send the body without a content coding.", domain.Shorten(coding))
	}
	contentType := r.Header.Get("Content-Type")
	media, params, _ := mime.ParseMediaType(contentType)
	isBatch = media == batchOfEvents
	isBinary := media != structuredEvent && !isBatch
	if isBinary && (!cloudevent.IsBinary(r.Header) || strings.HasPrefix(media, "application/cloudevents")) {
		w.Header().Set("Accept-Post", structuredEvent+", "+batchOfEvents)
		return nil, false, release, refuse(wrongContentType, "Content-Type %q is not accepted; send %s, %s, or an event in the binary mode, with the header ce-specversion and the others.",
			domain.Shorten(contentType), structuredEvent, batchOfEvents)
	}
	if charset, ok := params["charset"]; ok && !isBinary && !strings.EqualFold(charset, "utf-8") {
		return nil, false, release, refuse(wrongContentType, "Charset %q is not accepted; JSON is UTF-8.", domain.Shorten(charset))
	}
	limit := int64(maxEventBody)
	if isBatch {
		limit = maxBatchBody
	}
	text, release, err := s.readBody(w, r, min(limit, s.opts.Limits.RequestBody))
	if err != nil {
		return nil, false, release, err
	}
	if isBinary {
		m, faults := cloudevent.Binary(r.Header, text)
		return []domain.Message{m}, false, release, eventFaults(faults, false)
	}
	if err := checkJSONText(text); err != nil {
		return nil, false, release, err
	}
	if !isBatch {
		m, faults := cloudevent.Structured(text)
		return []domain.Message{m}, false, release, eventFaults(faults, false)
	}
	messages, faults := cloudevent.Batch(text)
	if len(messages) > maxBatchEvents {
		return nil, true, release, refuse(tooManyEvents, "Nothing was stored: there are %d events, and %d is the limit. Send them in several requests.", len(messages), maxBatchEvents)
	}
	return messages, true, release, eventFaults(faults, true)
}

// readBody reads a body of up to limit bytes. The body takes memory from the pool of request bodies
// until release is called.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, limit int64) (text []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > limit {
		return nil, release, unreadableEvents(&http.MaxBytesError{Limit: limit}, limit)
	}
	body, err := s.openBody(r, http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, release, err
	}
	text, err = io.ReadAll(body)
	if err != nil {
		err = unreadableEvents(err, limit)
	}
	return text, body.close, err
}

func unreadableEvents(err error, limit int64) error {
	if _, ok := errors.AsType[*problemError](err); ok {
		return err
	}
	return unreadableBody(err, limit)
}

// checkJSONText refuses a body that is not JSON in UTF-8.
func checkJSONText(text []byte) error {
	if !utf8.Valid(text) || len(bytes.TrimSpace(text)) == 0 || !json.Valid(text) {
		return refuse(notJSON, "Nothing was stored: the body must be JSON in UTF-8.")
	}
	return nil
}

// eventFaults returns the problem for the faults of events, or nil if none exist.
func eventFaults(found []cloudevent.Fault, isBatch bool) error {
	if len(found) == 0 {
		return nil
	}
	faults := make([]bodyFault, 0, min(len(found), maxFaults))
	for _, f := range found[:min(len(found), maxFaults)] {
		faults = append(faults, bodyFault{Pointer: eventPointer(f.Index, f.Attribute, isBatch), Detail: f.Detail, index: f.Index})
	}
	return &problemError{problem: invalid, detail: faultsDetail(len(found)), faults: faults}
}

// eventPointer returns the JSON pointer to an attribute of an event.
func eventPointer(index int, attribute string, isBatch bool) string {
	pointer := ""
	if isBatch {
		pointer = "/" + strconv.Itoa(index)
	}
	if attribute != "" {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(attribute)
	}
	return pointer
}

// differingEvents returns the problem for a request with events whose ids were sent before with
// different content.
func differingEvents(answer counts, conflicts []int, isBatch bool) error {
	faults := make([]bodyFault, len(conflicts))
	for i, index := range conflicts {
		faults[i] = bodyFault{Pointer: eventPointer(index, "id", isBatch), Detail: "sent before with other content", index: index}
	}
	return &problemError{
		problem: alreadyStored,
		detail: fmt.Sprintf("%d of the events have the source and the id of events that were sent before with other content; errors names them. "+
			"The others are stored, and accepted and duplicates count them. Give new events new ids.", len(conflicts)),
		faults: faults, stored: &answer,
	}
}

// asPublishProblem returns the problem for a request whose events are possibly not stored. If the
// store throttles requests, the problem type is unavailable, because the sender has not exceeded a
// limit.
func asPublishProblem(ctx context.Context, published publish.Result, err error) error {
	p := asProblem(ctx, err)
	if p.problem == busy && domain.KindOf(err) == domain.Busy {
		p = &problemError{problem: unavailable, cause: err}
	}
	if n := published.Accepted + published.Duplicates + len(published.Conflicts); n > 0 && problems[p.problem].retry {
		p.detail = fmt.Sprintf("Not all events are stored for certain: %d are, the others may be. "+
			"Repeat the same request after a pause: that is safe, nothing is stored twice.", n)
	}
	return p
}

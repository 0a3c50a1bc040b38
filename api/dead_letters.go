package api

import (
	"cmp"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/hub"
)

// Operators list, read, resend and delete the dead letters of Service Bus queues. Each order, and
// each reading of a body, requires the operator and a reason, and is recorded. Sequence numbers are
// strings in JSON, because they may exceed the precision of a float64.

const deadLettersPath = "/v1/admin/dead-letters"

func (s *Server) requireDeadLetters(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.DeadLetters == nil {
			return refuse(notFound, "This hub has no queues.")
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// A deadLetterView is the JSON of a dead letter without its body.
type deadLetterView struct {
	SequenceNumber int64     `json:"sequenceNumber,string"`
	MessageID      string    `json:"messageId,omitempty"`
	Session        *string   `json:"session,omitempty"`
	Enqueued       time.Time `json:"enqueued"`
	Reason         string    `json:"reason,omitempty"`
	Description    string    `json:"description,omitempty"`
	DeliveryCount  int       `json:"deliveryCount"`
	Bytes          int64     `json:"bytes"`
	ContentType    string    `json:"contentType,omitempty"`
	Subject        string    `json:"subject,omitempty"`
	ResentBy       string    `json:"resentBy,omitempty"`
}

func newDeadLetter(d *deadletters.DeadLetter) deadLetterView {
	return deadLetterView{
		SequenceNumber: d.Number, MessageID: d.MessageID, Session: d.Session, Enqueued: d.EnqueuedAt.UTC(), Reason: d.Reason, Description: d.Description,
		DeliveryCount: d.DeliveryCount, Bytes: d.Size, ContentType: d.ContentType, Subject: d.Subject, ResentBy: d.ResentBy,
	}
}

// listDeadLetters lists the queues or, if the request names a queue, a page of its dead letters.
func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "queue", "after", "reason", "limit")
	if err != nil {
		return err
	}
	if !values.Has("queue") {
		if len(values) > 0 {
			return refuse(invalid, "queue: missing; without it, the answer is the list of queues, which takes no other parameter")
		}
		return s.listDeadLetterQueues(w)
	}
	q := deadletters.Query{Reason: values.Get("reason"), Limit: deadletters.MaxPage}
	if q.After, err = sequenceNumberOf(values, "after"); err != nil {
		return err
	}
	if q.Limit, err = countOf(values, "limit", deadletters.MaxPage, deadletters.MaxPage); err != nil {
		return err
	}
	page, err := s.opts.DeadLetters.List(r.Context(), values.Get("queue"), q)
	if err != nil {
		return err
	}
	answer := struct {
		Queue       string           `json:"queue"`
		DeadLetters []deadLetterView `json:"deadLetters"`
		Next        int64            `json:"next,omitempty,string"`
	}{values.Get("queue"), make([]deadLetterView, 0, len(page.DeadLetters)), page.Next}
	for i := range page.DeadLetters {
		answer.DeadLetters = append(answer.DeadLetters, newDeadLetter(&page.DeadLetters[i]))
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) listDeadLetterQueues(w http.ResponseWriter) error {
	type queue struct {
		Queue       string `json:"queue"`
		Use         string `json:"use"`
		DeadLetters *int64 `json:"deadLetters,omitempty"` // nil: unknown
		NoResend    string `json:"noResend,omitempty"`
	}
	answer := struct {
		Queues []queue `json:"queues"`
	}{Queues: []queue{}}
	for _, state := range s.opts.DeadLetters.Queues() {
		q := queue{Queue: state.Name, Use: state.Use, NoResend: state.NoResend}
		if state.IsKnown {
			q.DeadLetters = &state.DeadLetters
		}
		answer.Queues = append(answer.Queues, q)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// parseOrder returns the operator and the reason of an order. The request must have no body.
func parseOrder(r *http.Request) (hub.AdminAction, error) {
	values, err := query.Parse(r, "who", "why")
	if err != nil {
		return hub.AdminAction{}, err
	}
	return orderOf(r, values)
}

// getDeadLetter responds with a dead letter and its body.
func (s *Server) getDeadLetter(w http.ResponseWriter, r *http.Request) error {
	queue, number, err := deadLetterOf(r)
	if err != nil {
		return err
	}
	by, err := parseOrder(r)
	if err != nil {
		return err
	}
	found, err := s.opts.DeadLetters.ReadContent(r.Context(), queue, number, by)
	if err != nil {
		return err
	}
	answer := struct {
		deadLetterView
		Properties map[string]string `json:"properties"`
		Text       *string           `json:"text,omitempty"`
		Base64     *string           `json:"base64,omitempty"`
		IsCut      bool              `json:"cut,omitempty"`
	}{deadLetterView: newDeadLetter(&found.DeadLetter), Properties: found.Properties, IsCut: found.IsCut}
	if utf8.Valid(found.Body) {
		text := string(found.Body)
		answer.Text = &text
	} else {
		text := base64.StdEncoding.EncodeToString(found.Body)
		answer.Base64 = &text
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) resendDeadLetter(w http.ResponseWriter, r *http.Request) error {
	queue, number, err := deadLetterOf(r)
	if err != nil {
		return err
	}
	by, err := readOrder(w, r, nil)
	if err != nil {
		return err
	}
	if err := s.opts.DeadLetters.Resend(r.Context(), queue, number, by); err != nil {
		return err
	}
	return writeNoContent(w)
}

func (s *Server) deleteDeadLetter(w http.ResponseWriter, r *http.Request) error {
	queue, number, err := deadLetterOf(r)
	if err != nil {
		return err
	}
	by, err := parseOrder(r)
	if err != nil {
		return err
	}
	if err := s.opts.DeadLetters.Delete(r.Context(), queue, number, by); err != nil {
		return err
	}
	return writeNoContent(w)
}

// resendDeadLetters resends dead letters that have one reason, up to the number in the request.
func (s *Server) resendDeadLetters(w http.ResponseWriter, r *http.Request) error {
	var of deadletters.Selection
	var after, through string
	by, err := readOrder(w, r, jsonFields{"reason": &of.Reason, "after": &after, "through": &through}, "reason", "through")
	if err != nil {
		return err
	}
	if of.After, err = parseSequenceNumber("after", cmp.Or(after, "0")); err != nil {
		return err
	}
	if of.Through, err = parseSequenceNumber("through", through); err != nil {
		return err
	}
	progress, err := s.opts.DeadLetters.ResendSome(r.Context(), queueOf(r), of, by)
	return writeProgress(w, r, progress, err)
}

// deleteDeadLetters deletes dead letters that have one reason, up to the number in the request.
func (s *Server) deleteDeadLetters(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "reason", "after", "through", "who", "why")
	if err != nil {
		return err
	}
	by, err := orderOf(r, values)
	if err != nil {
		return err
	}
	of := deadletters.Selection{Reason: values.Get("reason")}
	if of.After, err = sequenceNumberOf(values, "after"); err != nil {
		return err
	}
	if of.Through, err = sequenceNumberOf(values, "through"); err != nil {
		return err
	}
	progress, err := s.opts.DeadLetters.DeleteSome(r.Context(), queueOf(r), of, by)
	return writeProgress(w, r, progress, err)
}

func writeProgress(w http.ResponseWriter, r *http.Request, p deadletters.Progress, err error) error {
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.Int("dead_letters", p.Letters))
	writeJSON(w, http.StatusOK, struct {
		Count   int    `json:"count"`
		Next    int64  `json:"next,omitempty,string"`
		Failure string `json:"failure,omitempty"`
	}{p.Letters, p.Next, p.Failure})
	return nil
}

// deadLetterRecords lists the records of orders for dead letters of a queue.
func (s *Server) deadLetterRecords(w http.ResponseWriter, r *http.Request) error {
	const usual, maxLimit = 100, 1000
	values, err := query.Parse(r, "limit")
	if err != nil {
		return err
	}
	limit, err := countOf(values, "limit", usual, maxLimit)
	if err != nil {
		return err
	}
	found, err := s.opts.DeadLetters.Records(r.Context(), queueOf(r), limit)
	if err != nil {
		return err
	}
	type record struct {
		When           time.Time `json:"when"`
		Who            string    `json:"who"`
		Why            string    `json:"why"`
		What           string    `json:"what"`
		SequenceNumber int64     `json:"sequenceNumber,omitempty,string"`
		MessageID      string    `json:"messageId,omitempty"`
		Reason         string    `json:"reason,omitempty"`
		Outcome        string    `json:"outcome,omitempty"`
		Count          int       `json:"count"`
	}
	answer := struct {
		Records []record `json:"records"`
	}{Records: make([]record, 0, len(found))}
	for i := range found {
		f := &found[i]
		answer.Records = append(answer.Records, record{f.When.UTC(), f.Who, f.Why, f.What, f.Number, f.MessageID, f.Reason, f.Outcome, f.Letters})
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// queueOf returns the name of the queue in the path, where a slash in the name is escaped as %2F.
func queueOf(r *http.Request) string {
	name := pathparam.Value(r, "queue")
	recordOf(r.Context()).note(slog.String("queue", domain.Shorten(name)))
	return name
}

// deadLetterOf returns the queue and the sequence number in the path.
func deadLetterOf(r *http.Request) (queue string, number int64, err error) {
	queue = queueOf(r)
	number, err = parseSequenceNumber("sequenceNumber", pathparam.Value(r, "sequenceNumber"))
	recordOf(r.Context()).note(slog.Int64("sequence_number", number))
	return queue, number, err
}

func parseSequenceNumber(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, refuse(invalid, "%s: want a sequence number, got %q", name, domain.Shorten(text))
	}
	return n, nil
}

// sequenceNumberOf returns a query parameter that is a sequence number, or 0 if it is missing.
func sequenceNumberOf(values url.Values, name string) (int64, error) {
	if !values.Has(name) {
		return 0, nil
	}
	return parseSequenceNumber(name, values.Get(name))
}

// countOf returns a query parameter that is a number from 1 to limit, or usual if it is missing.
func countOf(values url.Values, name string, usual, limit int) (int, error) {
	if !values.Has(name) {
		return usual, nil
	}
	n, err := strconv.Atoi(values.Get(name))
	if err != nil || n < 1 || n > limit {
		return 0, refuse(invalid, "%s: want a whole number from 1 to %d, got %q", name, limit, domain.Shorten(values.Get(name)))
	}
	return n, nil
}

// orderOf returns the operator and the reason of an order, which it reads from the query. If the
// sender has a token, the token determines the operator.
func orderOf(r *http.Request, values url.Values) (hub.AdminAction, error) {
	by := hub.AdminAction{Who: values.Get("who"), Why: values.Get("why")}
	if by.Why == "" {
		return by, refuse(invalid, "why: missing; say why in the query, for the record")
	}
	p := principalOf(r.Context())
	switch {
	case p != nil:
		by.Who = p.RecordName(by.Who)
	case by.Who == "":
		return by, refuse(invalid, "who: missing; say who you are in the query, for the record")
	}
	recordOf(r.Context()).note(slog.String("who", by.Who))
	return by, nil
}

// busProblemOf returns the problem for an error of the bus.
func busProblemOf(err *deadletters.BusError) *problemError {
	p, ok := problemOfKind[domain.KindOf(err)]
	switch {
	case !ok:
		return &problemError{problem: internal, cause: err}
	case p == unavailable:
		p = busUnavailable
	case p == uncertain:
		p = resendUncertain
	}
	return &problemError{problem: p, detail: err.Error(), cause: err}
}

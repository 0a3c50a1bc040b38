package api

import (
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
)

// A messageDeliveryDocument is the JSON of one message's delivery to a subscription.
type messageDeliveryDocument struct {
	ID           string            `json:"id"`
	Subscription string            `json:"subscription"`
	Position     positionDocument  `json:"position"`
	State        string            `json:"state"`
	Inferred     bool              `json:"inferred,omitempty"`
	Event        *eventKeyDocument `json:"event,omitempty"`
	Published    *time.Time        `json:"published,omitempty"`
	Attempts     int               `json:"attempts"`
	Due          *time.Time        `json:"due,omitempty"`
	Reason       string            `json:"reason,omitempty"`
	LastAttempt  *attemptDocument  `json:"last_attempt,omitempty"` // set only in a list
	History      []attemptDocument `json:"history,omitempty"`      // omitted in a list
}

type positionDocument struct {
	Priority int   `json:"priority"`
	Number   int64 `json:"number"`
}

type eventKeyDocument struct {
	ID     string `json:"id,omitempty"`
	Type   string `json:"type,omitempty"`
	Source string `json:"source,omitempty"`
}

type attemptDocument struct {
	Number   int       `json:"number"`
	Began    time.Time `json:"began"`
	Duration float64   `json:"duration_ms"`
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
}

func documentOfAttempt(a *domain.Attempt) attemptDocument {
	return attemptDocument{Number: a.Number, Began: a.Began.UTC(), Duration: milliseconds(a.Took), Status: a.Status, Error: a.Error}
}

func documentOfMessageDelivery(d *inspect.Delivery) messageDeliveryDocument {
	doc := messageDeliveryDocument{
		ID: d.ID.String(), Subscription: d.ID.Subscription.String(), Position: positionDocument{d.ID.Entry.Priority, d.ID.Entry.Number},
		State: string(d.State), Inferred: d.Inferred, Published: timeOrNil(d.Published), Attempts: d.Attempts,
		Due: timeOrNil(d.Due), Reason: d.Reason,
	}
	if d.Event != nil {
		doc.Event = &eventKeyDocument{d.Event.ID, d.Event.Type, d.Event.Source}
	}
	for i := range d.History {
		doc.History = append(doc.History, documentOfAttempt(&d.History[i]))
	}
	return doc
}

// documentOfListedDelivery returns a delivery without its history, except for the last attempt.
func documentOfListedDelivery(d *inspect.Delivery) messageDeliveryDocument {
	doc := documentOfMessageDelivery(d)
	if n := len(doc.History); n > 0 {
		doc.LastAttempt, doc.History = &doc.History[n-1], nil
	}
	return doc
}

// An expiryDocument is the JSON of a range of messages that have expired.
type expiryDocument struct {
	Priority int       `json:"priority"`
	From     int64     `json:"from"`
	To       int64     `json:"to"`
	Count    int64     `json:"count"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}

func documentsOfExpiries(all []domain.Expiry) []expiryDocument {
	docs := make([]expiryDocument, len(all))
	for i := range all {
		x := &all[i]
		docs[i] = expiryDocument{x.From.Priority, x.From.Number, x.To, x.Count(), x.At.UTC(), x.Reason()}
	}
	return docs
}

type explanationDocument struct {
	Delivery     messageDeliveryDocument `json:"delivery"`
	Cause        string                  `json:"cause"`
	Sentences    []string                `json:"sentences"`
	Behind       int64                   `json:"behind"`
	AttemptsLeft int                     `json:"attempts_left"`
	NextAttempt  *time.Time              `json:"next_attempt,omitempty"`
	HeldUntil    *time.Time              `json:"held_until,omitempty"`
	BreakerUntil *time.Time              `json:"breaker_until,omitempty"`
	Paused       string                  `json:"paused,omitempty"`
	Actions      []actionDocument        `json:"actions"`
}

type actionDocument struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Text   string `json:"text"`
}

func documentOfExplanation(x *inspect.Explanation) explanationDocument {
	doc := explanationDocument{
		Delivery: documentOfMessageDelivery(&x.Delivery), Cause: string(x.Cause), Sentences: x.Sentences, Behind: x.Behind, AttemptsLeft: x.AttemptsLeft,
		NextAttempt: timeOrNil(x.NextAttempt), HeldUntil: timeOrNil(x.HeldUntil), BreakerUntil: timeOrNil(x.BreakerUntil), Paused: x.PausedFor,
		Actions: make([]actionDocument, len(x.Actions)),
	}
	for i, a := range x.Actions {
		doc.Actions[i] = actionDocument(a)
	}
	return doc
}

type testDocument struct {
	Success   bool    `json:"success"`
	Status    int     `json:"status,omitempty"`
	Duration  float64 `json:"duration_ms"`
	Error     string  `json:"error,omitempty"`
	Answer    string  `json:"answer,omitempty"`
	MessageID string  `json:"message_id"`
}

func documentOfTest(r *inspect.TestResult) testDocument {
	return testDocument{
		Success: r.IsSuccess, Status: r.Answer.Status, Duration: milliseconds(r.Answer.Took), Error: r.Answer.Error,
		Answer: string(r.Body), MessageID: r.MessageID,
	}
}

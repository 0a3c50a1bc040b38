package objectevents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/internal/objectjson"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// The reasons of dead letters. Package objectjson defines further reasons.
const (
	reasonNoBody   = "no-body" // the body is not one data section
	reasonTooLarge = "body-too-large"
	reasonTooMany  = "too-many-events"
	reasonNoEvents = "no-events"
	reasonInvalid  = "invalid"
	reasonFull     = "partition-full" // the store has no space for an object of the message
	reasonDamaged  = "damaged"        // the stored data about an object is damaged
)

// reasons contains the reasons that this package defines.
var reasons = []string{reasonNoBody, reasonTooLarge, reasonTooMany, reasonNoEvents, reasonInvalid, reasonFull, reasonDamaged}

// messageContent is the decoded content of a message.
type messageContent = *objectjson.Events

type busMessage = receiver.Message[messageContent]

// An eventStore stores the events in the messages of one loop.
type eventStore struct {
	receiver *Receiver
	loop     *receiver.Loop[messageContent]
	parked   parkedTasks
}

// Decode implements receiver.Handler.
func (s *eventStore) Decode(m *azservicebus.ReceivedMessage) (messageContent, int, *receiver.Rejection) {
	const perEvent = 700 // approximate size of an event in memory, in bytes
	o := &s.receiver.opts
	switch {
	case m.Body == nil:
		return nil, 0, receiver.Reject(reasonNoBody, "The message has no body of one AMQP data section. Send the JSON of the events as it is.")
	case len(m.Body) > o.Body:
		return nil, len(m.Body), receiver.Reject(reasonTooLarge, "The body has %d bytes; the hub takes at most %d.", len(m.Body), o.Body)
	}
	// The message id identifies events without ids. For a resent message, it is the id that the
	// original sender set.
	id := contract.FormerMessageID(m.MessageID, m.ApplicationProperties)
	sent, err := objectjson.Parse(m.Body, objectjson.Options{MaxEvents: o.Events, MessageID: id})
	weight := len(m.Body) + perEvent*len(sent.Events)
	if many, ok := errors.AsType[*objectjson.TooManyError](err); ok {
		return nil, weight, receiver.Reject(reasonTooMany, "There are %v in the message. Send them in several messages.", many)
	}
	if err != nil {
		return nil, weight, receiver.Reject(objectjson.NotJSON, "The body cannot be split into events: %v.", err)
	}
	s.recordIgnored(m, sent)
	switch {
	case len(sent.Faults) > 0 && len(sent.Faults) == sent.Count:
		return sent, weight, receiver.Reject(sent.Faults[0].Reason, "%s", describeFaults(sent.Faults))
	case sent.Count == 0:
		return sent, weight, receiver.Reject(reasonNoEvents, "The message has no events.")
	}
	return sent, weight, nil
}

// recordIgnored counts and logs the events of a message that are not stored.
func (s *eventStore) recordIgnored(m *azservicebus.ReceivedMessage, sent messageContent) {
	r := s.receiver
	for i := range sent.Faults {
		r.metrics.refused.WithLabelValues(sent.Faults[i].Reason).Inc()
	}
	r.metrics.events.WithLabelValues("refused").Add(float64(len(sent.Faults)))
	r.metrics.events.WithLabelValues("ignored").Add(float64(sent.Ignored))
	if sent.Ignored > 0 {
		r.opts.Logger.Debug("events are ignored because of their names", "message_id", m.MessageID, "events", sent.Ignored, "first_names", sent.IgnoredNames)
	}
	if n := len(sent.Faults); n > 0 && n < sent.Count { // if no event is valid, DeadLettered logs the message instead
		r.opts.Logger.Error("events of a message cannot be stored; the others are", "message_id", m.MessageID, "events", n, "faults", describeFaults(sent.Faults[:min(n, 10)]))
	}
}

// describeFaults returns the index and reason of each fault, one per line.
func describeFaults(faults []objectjson.Fault) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events cannot be stored.", len(faults))
	for i := range faults {
		f := &faults[i]
		fmt.Fprintf(&b, "\nevent %d at %q: %s: %s", f.Index, f.Pointer, f.Reason, f.Detail)
		if b.Len() > receiver.MaxDescription {
			break
		}
	}
	return b.String()
}

// DeadLettered implements receiver.Handler.
func (s *eventStore) DeadLettered(m *busMessage) {
	s.receiver.opts.Logger.Error("a message with events of objects is a dead letter now", "message_id", m.MessageID, "reason", m.Rejection.Reason)
}

// A task is a message with those of its events that have no outcome yet.
type task struct {
	*busMessage
	left   []ledger.Report
	damage int // number of consecutive reports that stored data is damaged
}

// Store implements receiver.Handler. It settles a message once all its events have an outcome, and
// parks it until then.
func (s *eventStore) Store(ctx context.Context, batch []*busMessage) {
	tasks := make([]*task, len(batch))
	for i, m := range batch {
		tasks[i] = &task{busMessage: m}
		for j := range m.Content.Events {
			e := &m.Content.Events[j]
			tasks[i].left = append(tasks[i].left, ledger.Report{Name: e.Name, ObjectEvent: e.ObjectEvent})
		}
	}
	s.tryStore(ctx, tasks)
}

// tryStore tries once to store the events of tasks. It then settles or parks each message.
func (s *eventStore) tryStore(ctx context.Context, tasks []*task) {
	var reports []ledger.Report
	var owners []*task
	for _, t := range tasks {
		for _, r := range t.left {
			reports, owners = append(reports, r), append(owners, t)
		}
		t.left = nil
	}
	attempted, cancel := context.WithTimeout(ctx, attempt)
	done := s.receiver.opts.Ledger.Ingest(attempted, reports)
	cancel()
	s.loop.EndStore() // other loops may store while messages are parked
	s.receiver.metrics.events.WithLabelValues("stored").Add(float64(done.Stored))
	s.receiver.metrics.events.WithLabelValues("duplicate").Add(float64(done.Duplicates))
	if done.TooOld > 0 {
		s.receiver.metrics.events.WithLabelValues("too-old").Add(float64(done.TooOld))
		s.receiver.opts.Logger.Warn("events came later than objects.retention, and are not stored", "events", done.TooOld)
	}
	var cause error
	damaged := make(map[*task]bool)
	for i := range done.Failures {
		f := &done.Failures[i]
		t := owners[f.Event]
		if reason := t.finalReason(f); reason != "" {
			s.rejectMessage(t, &reports[f.Event], reason, f.Err)
			continue
		}
		cause = f.Err
		damaged[t] = damaged[t] || domain.KindOf(f.Err) == domain.Damaged
		t.left = append(t.left, reports[f.Event])
	}
	for _, t := range tasks {
		if t.damage++; !damaged[t] {
			t.damage = 0
		}
		switch {
		case len(t.left) == 0:
			s.loop.Settle(t.busMessage)
		case ctx.Err() != nil:
			s.loop.Abandon(t.busMessage)
		default:
			s.parkMessage(t, cause)
		}
	}
}

// finalReason returns the dead-letter reason for an event whose retry cannot succeed. It returns ""
// if a retry may succeed.
func (t *task) finalReason(f *ledger.Failure) string {
	// number of consecutive reports of damage after which an object counts as damaged; a single
	// report may come from reading a change in progress
	const patience = 4
	switch {
	case f.IsInvalid():
		return reasonInvalid
	case f.IsFull():
		return reasonFull
	case domain.KindOf(f.Err) == domain.Damaged && t.damage+1 >= patience:
		return reasonDamaged
	}
	return ""
}

// rejectMessage records that an event of a message cannot be stored. The message becomes a dead
// letter once all its remaining events have an outcome.
func (s *eventStore) rejectMessage(t *task, r *ledger.Report, reason string, err error) {
	s.receiver.metrics.events.WithLabelValues("refused").Inc()
	s.receiver.metrics.refused.WithLabelValues(reason).Inc()
	if t.Rejection == nil {
		t.Rejection = receiver.Reject(reason, "An event of the object with the key %q in %q is not stored: %v. The other events of the message are stored, unless they have the same fault. "+
			"Send the message again after the repair; no event is stored twice.", domain.Shorten(r.Name.Key()), r.Name.Bucket(), err)
	}
}

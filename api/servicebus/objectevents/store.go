package objectevents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/internal/objectjson"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// The reasons of dead letters, besides those of package objectjson.
const (
	reasonNoBody   = "no-body" // the body is not one data section
	reasonTooLarge = "body-too-large"
	reasonTooMany  = "too-many-events"
	reasonNoEvents = "no-events"
	reasonInvalid  = "invalid"
	reasonFull     = "partition-full" // the store has no room for an object of the message
	reasonDamaged  = "damaged"        // what is stored of an object of the message contradicts itself
)

// content is what a message says.
type content = *objectjson.Events

type message = receiver.Message[content]

// A store stores the events of the messages of one loop.
type store struct {
	receiver *Receiver
	loop     *receiver.Loop[content]
}

// Decode implements receiver.Handler.
func (s *store) Decode(m *azservicebus.ReceivedMessage) (content, int, *receiver.Rejection) {
	const perEvent = 700 // bytes in memory, about
	o := &s.receiver.opts
	switch {
	case m.Body == nil:
		return nil, 0, receiver.Reject(reasonNoBody, "The message has no body of one AMQP data section. Send the JSON of the events as it is.")
	case len(m.Body) > o.Body:
		return nil, len(m.Body), receiver.Reject(reasonTooLarge, "The body has %d bytes; the hub takes at most %d.", len(m.Body), o.Body)
	}
	sent, err := objectjson.Parse(m.Body, objectjson.Options{MaxEvents: o.Events, MessageID: m.MessageID})
	weight := len(m.Body) + perEvent*len(sent.Events)
	if many, ok := errors.AsType[*objectjson.TooManyError](err); ok {
		return nil, weight, receiver.Reject(reasonTooMany, "There are %v in the message. Send them in several messages.", many)
	}
	if err != nil {
		return nil, weight, receiver.Reject(objectjson.NotJSON, "The body cannot be split into events: %v.", err)
	}
	s.note(m, sent)
	switch {
	case len(sent.Faults) > 0 && len(sent.Faults) == sent.Count:
		return sent, weight, receiver.Reject(sent.Faults[0].Reason, "%s", describe(sent.Faults))
	case sent.Count == 0:
		return sent, weight, receiver.Reject(reasonNoEvents, "The message has no events.")
	}
	return sent, weight, nil
}

// note counts and logs the events of a message that are not for the store.
func (s *store) note(m *azservicebus.ReceivedMessage, sent content) {
	r := s.receiver
	for i := range sent.Faults {
		r.metrics.refused.WithLabelValues(sent.Faults[i].Reason).Inc()
	}
	r.metrics.events.WithLabelValues("refused").Add(float64(len(sent.Faults)))
	r.metrics.events.WithLabelValues("ignored").Add(float64(sent.Ignored))
	if sent.Ignored > 0 {
		r.opts.Logger.Debug("events are ignored, for their names", "message_id", m.MessageID, "events", sent.Ignored, "first_names", sent.IgnoredNames)
	}
	if n := len(sent.Faults); n > 0 && n < sent.Count { // otherwise the dead letter is logged
		r.opts.Logger.Error("events of a message cannot be stored; the others are", "message_id", m.MessageID, "events", n, "faults", describe(sent.Faults[:min(n, 10)]))
	}
}

// describe returns the places and reasons of faults, a line for each.
func describe(faults []objectjson.Fault) string {
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
func (s *store) DeadLettered(m *message) {
	s.receiver.opts.Logger.Error("a message with events of objects is a dead letter now", "message_id", m.MessageID, "reason", m.Rejection.Reason)
}

// A pending event is one that has no outcome yet.
type pending struct {
	message *message
	report  ledger.Report
}

// Store implements receiver.Handler. Messages are settled as soon as all of their events have an outcome.
func (s *store) Store(ctx context.Context, batch []*message) {
	// Damage, and another format, are believed when it was seen this often in a row: what was read may have been about to change.
	const patience = 4
	var events []pending
	left := make(map[*message]int, len(batch))
	for _, m := range batch {
		if left[m] = len(m.Content.Events); left[m] == 0 {
			s.loop.Settle(m)
		}
		for i := range m.Content.Events {
			e := &m.Content.Events[i]
			events = append(events, pending{m, ledger.Report{Name: e.Name, ObjectEvent: e.ObjectEvent}})
		}
	}
	for failures := 1; len(events) > 0; failures++ {
		before := len(events)
		var cause error
		events, cause = s.try(ctx, events, failures >= patience)
		s.loop.EndStore() // no loop waits for one that fails
		s.settle(batch, left, events)
		if len(events) == 0 {
			return
		}
		if ctx.Err() != nil || failures >= patience && domain.KindOf(cause) == domain.NewerFormat {
			break // in the second case, a node of the newer version may receive them
		}
		if len(events) < before {
			failures = 1 // the store works
		}
		s.receiver.metrics.retries.Inc()
		if failures&(failures-1) == 0 {
			s.receiver.opts.Logger.Warn("events of objects cannot be stored; holding them and trying again", "error", cause, "events", len(events), "failures", failures)
		}
		busclient.Sleep(ctx, s.receiver.delay(failures))
	}
	for m, n := range left {
		if n > 0 {
			s.loop.Abandon(m)
		}
	}
}

// settle passes on the messages that have no event left, and counts in left what the others have.
func (s *store) settle(batch []*message, left map[*message]int, events []pending) {
	still := make(map[*message]int)
	for i := range events {
		still[events[i].message]++
	}
	for _, m := range batch {
		if left[m] > 0 && still[m] == 0 {
			s.loop.Settle(m)
		}
		left[m] = still[m]
	}
}

// try stores events once, and returns those that have no outcome, and why one of them has none: if
// possible, for a reason that passes. Damage is an outcome if it is certain.
func (s *store) try(ctx context.Context, events []pending, isCertain bool) (again []pending, cause error) {
	reports := make([]ledger.Report, len(events))
	for i := range events {
		reports[i] = events[i].report
	}
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	r := s.receiver
	done := r.opts.Ledger.Ingest(ctx, reports)
	r.metrics.events.WithLabelValues("stored").Add(float64(done.Stored))
	r.metrics.events.WithLabelValues("duplicate").Add(float64(done.Duplicates))
	for i := range done.Failures {
		f := &done.Failures[i]
		e := events[f.Event]
		reason := ""
		switch {
		case f.IsInvalid():
			reason = reasonInvalid
		case f.IsFull():
			reason = reasonFull
		case domain.KindOf(f.Err) == domain.Damaged && isCertain:
			reason = reasonDamaged
		default:
			again = append(again, e)
			if cause == nil || domain.KindOf(cause) == domain.NewerFormat {
				cause = f.Err
			}
			continue
		}
		r.metrics.events.WithLabelValues("refused").Inc()
		r.metrics.refused.WithLabelValues(reason).Inc()
		if e.message.Rejection == nil {
			e.message.Rejection = receiver.Reject(reason, "An event of the object with the key %q in %q is not stored: %v. The others of the message are, unless they have the same fault. "+
				"Send the message again when that is repaired; nothing is stored twice.", domain.Clip(e.report.Name.Key()), e.report.Name.Bucket(), f.Err)
		}
	}
	return again, cause
}

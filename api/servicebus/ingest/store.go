package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// An eventStore stores the events that the messages of one loop announce.
type eventStore struct {
	in        *Ingestion
	loop      *receiver.Loop[messageEvents]
	logger    *slog.Logger
	isSession bool          // true if the loop serves a session, whose messages all have the same recipient
	origin    domain.Origin // required origin of all events; the zero Origin allows all

	damage error // why the session was given up: its mailbox is damaged or has a newer format
	parked parkedMessages
}

// A busMessage is a message that announces events.
type busMessage = receiver.Message[messageEvents]

// messageEvents is the decoded body of a message.
type messageEvents struct {
	events []domain.Event
	causes []domain.TraceContext // trace contexts in the CloudEvents of the message
}

// TraceCauses implements receiver.Caused.
func (c messageEvents) TraceCauses() []domain.TraceContext { return c.causes }

// loopOptions returns the options of the loop whose messages s stores.
func (s *eventStore) loopOptions(queue string) receiver.Options[messageEvents] {
	limits := &s.in.limits
	return receiver.Options[messageEvents]{
		Queue: queue, Handler: s, Parker: s,
		Limits: receiver.Limits{
			Messages: limits.ReceiverMessages, Bytes: limits.ReceiverBytes, Settle: limits.Settle,
			Linger: limits.Linger, Turn: limits.Turn, TurnMessages: limits.TurnMessages,
		},
		InHand: s.in.inHand, Stores: s.in.saves, Tracer: s.in.tracer, Metrics: s.in.metrics.loops, Logger: s.logger, Clock: s.in.opts.Clock,
	}
}

// Decode implements receiver.Handler.
func (s *eventStore) Decode(raw *azservicebus.ReceivedMessage) (_ messageEvents, weight int, _ *rejection) {
	// perEvent is the approximate size of an event in memory. The total size of the held messages
	// is limited, so perEvent also limits the number of events in a save, and thus its duration.
	const perEvent = 400
	events, causes, rejected := s.in.decoder.decode(raw)
	if rejected == nil {
		rejected = checkOrigin(s.origin, events)
	}
	return messageEvents{events, causes}, max(len(raw.Body), perEvent*len(events)), rejected
}

// DeadLettered implements receiver.Handler.
func (s *eventStore) DeadLettered(m *busMessage) {
	s.logger.Error("a message cannot be stored and is a dead letter now; its recipients will not get it", "recipients", recipientsForLog(m.Content.events), "message_id", m.MessageID, "reason", m.Rejection.Reason)
}

// Store implements receiver.Handler. When it returns, each message was stored, rejected or parked,
// or has returned to the bus.
func (s *eventStore) Store(ctx context.Context, ms []*busMessage) {
	storable := make([]*busMessage, 0, len(ms))
	for _, m := range ms {
		if s.parked.waitsBehind(m) {
			s.parkMessage(m, nil)
			continue
		}
		storable = append(storable, m)
	}
	if len(storable) > 0 {
		s.save(ctx, storable, damagePatience)
	}
}

// save stores messages together. If the hub refuses an event, save stores the messages one by one
// in order, so that only the faulty messages are rejected; of two contents with one id, the first
// is stored. save also stores the messages one by one if the hub reports a mailbox of a newer
// format, or damage patience times in a row, so that the events of other recipients are stored. A
// session has one recipient, so in these two cases its messages return to the bus.
func (s *eventStore) save(ctx context.Context, ms []*busMessage, patience int) {
	if s.damage != nil { // an earlier message of the session is not stored, so storing later ones would break the order
		s.loop.Abandon(ms...)
		return
	}
	var events []domain.Event
	for _, m := range ms {
		events = append(events, m.Content.events...)
	}
	var ingested hub.IngestResult
	var err error
	if len(events) > 0 { // a message may have no events
		storing, span := s.startStoring(ctx, ms, len(events))
		ingested, err = s.untilStored(storing, events, patience)
		endStoring(span, err)
	}
	switch {
	case err == nil:
		s.finishStored(ms, ingested)
	case isRefusal(err) && len(ms) > 1:
		for _, m := range ms {
			s.save(ctx, []*busMessage{m}, patience)
		}
	case isRefusal(err):
		ms[0].Rejection = rejectionOf(err)
		s.loop.Settle(ms[0])
	case !isDamage(err) && !isNewerFormat(err) || ctx.Err() != nil:
		s.loop.Abandon(ms...)
	case s.isSession:
		s.giveUp(err)
		s.loop.Abandon(ms...)
	case len(ms) > 1:
		if isDamage(err) { // damage was already reported patience times; a newer format is not damage
			patience = 1
		}
		for _, m := range ms {
			if s.parked.waitsBehind(m) {
				s.parkMessage(m, nil)
				continue
			}
			s.save(ctx, []*busMessage{m}, patience)
		}
	case isNewerFormat(err):
		s.parkMessage(ms[0], err)
	default:
		ms[0].Rejection = rejectDamaged(err)
		s.loop.Settle(ms[0])
	}
}

// untilStored ingests events. It retries until the hub has stored or refused the events, reports a
// mailbox of a newer format, or reports damage patience times in a row, or until ctx ends.
func (s *eventStore) untilStored(ctx context.Context, events []domain.Event, patience int) (hub.IngestResult, error) {
	for failures, damage := 0, 0; ; {
		attempt, cancel := context.WithTimeout(ctx, s.in.limits.Attempt)
		ingested, err := s.in.opts.Hub.Ingest(attempt, events)
		cancel()
		s.loop.EndStore()                                  // after the first attempt, other loops may store, even if this store keeps failing
		s.in.metrics.events.AddAccepted(ingested.Accepted) // even after an error, the hub may have stored the events of some recipients
		if damage++; !isDamage(err) {
			damage = 0
		}
		if err == nil || isRefusal(err) || damage == patience || isNewerFormat(err) || ctx.Err() != nil {
			if failures > 0 {
				s.in.metrics.holding.Dec()
				s.logger.Info("no longer holding events", "failures", failures, "stored", err == nil)
			}
			return ingested, err
		}
		if failures++; failures == 1 {
			s.in.metrics.holding.Inc()
		}
		s.in.metrics.retries.Inc()
		if failures&(failures-1) == 0 {
			s.logger.Log(ctx, logLevel(err), "the events cannot be stored; holding them and trying again", "error", err, "events", len(events), "failures", failures)
		}
		busclient.Sleep(ctx, s.in.retryDelay(failures))
	}
}

// isRefusal reports whether the hub refused the events, so that retries cannot succeed.
func isRefusal(err error) bool {
	_, rejected := errors.AsType[*hub.RejectionError](err)
	return rejected || err != nil && domain.KindOf(err) == domain.Invalid
}

// logLevel returns the level at which an error that should be temporary is logged.
func logLevel(err error) slog.Level {
	passing := errors.Is(err, context.DeadlineExceeded)
	switch domain.KindOf(err) {
	case domain.Busy, domain.Unavailable, domain.Uncertain, domain.Conflict:
		passing = true
	default:
	}
	if passing {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// rejectionOf returns the rejection for a message whose events the hub refused with err.
func rejectionOf(err error) *rejection {
	if domain.KindOf(err) == domain.Conflict {
		return reject(reasonConflict, "No event of the message was stored: %v.", err)
	}
	if _, all := errors.AsType[*hub.RejectionError](err); all {
		return reject(reasonInvalid, "No event of the message was stored: %v.", err)
	}
	return reject(reasonInvalid, "The events of one recipient or more were not stored: %v. The events of other recipients are stored.", err)
}

// finishStored settles messages after a successful save.
func (s *eventStore) finishStored(ms []*busMessage, ingested hub.IngestResult) {
	s.in.metrics.events.AddKnown(ingested.Duplicates, len(ingested.Conflicts))
	// A message that was saved after its lock was lost is not observed, because another receiver
	// may have saved later messages first.
	if late := s.in.order.observe(slices.DeleteFunc(slices.Clone(ms), s.loop.IsLost), ingested.Duplicates); late > 0 {
		s.in.metrics.inversions.Add(float64(late))
		s.logger.Error("events were stored after later ones of the same recipient", "events", late, "first_of", recipientsForLog(ms[0].Content.events))
	}
	first := 0
	for _, m := range ms {
		after := first + len(m.Content.events)
		for _, at := range ingested.Conflicts {
			if first <= at && at < after {
				m.Rejection = reject(reasonConflict, "Event %s was stored before with other content. The events of the message with other ids are stored.", m.Content.events[at-first].ID)
				break
			}
		}
		first = after
	}
	for _, m := range ms {
		s.loop.Settle(m)
	}
}

// recipientsForLog returns up to five recipients of events as text for the log.
func recipientsForLog(events []domain.Event) []string {
	const limit = 5
	var to []string
	for i := range events {
		if r := events[i].Recipient.String(); len(to) < limit && !slices.Contains(to, r) {
			to = append(to, r)
		}
	}
	return to
}

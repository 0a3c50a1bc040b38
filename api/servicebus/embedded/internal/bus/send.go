package bus

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// The limits for messages.
const (
	maxID       = 128 // maximum length of a message id or session id, in bytes
	maxPath     = 260
	maxBatch    = 10_000
	maxEntities = 10_000
	maxTexts    = 64 << 10 // maximum total length of the remaining strings of a message, in bytes
	maxPending  = 64 << 20 // maximum number of uncommitted bytes
	maxHops     = 4        // maximum number of times that a message can be forwarded
	longestTTL  = 100 * 365 * 24 * time.Hour
	hopsReason  = "MaxTransferHopCountExceeded"
	nullReason  = "Session ID is null."
	nullMessage = "Session enabled entity doesn't allow a message whose session identifier is null."
)

// Send atomically stores a batch of messages in a queue or topic. Scheduled messages are delivered when they are due.
func (b *Bus) Send(path string, batch []Message, done func(error)) {
	b.runOperation(done, func() error {
		e, err := b.checkBatch(path, batch)
		if err != nil {
			return err
		}
		for _, m := range batch {
			if b.clearBusFields(&m); b.recordDuplicate(e, &m) != 0 {
				continue
			}
			if m.ScheduledFor.After(b.clock.Now()) {
				b.storeScheduled(e, m)
			} else {
				b.routeMessage(e, m, 0)
			}
		}
		return nil
	})
}

// Schedule is like Send, but passes the sequence numbers to done. CancelScheduled needs these numbers.
func (b *Bus) Schedule(path string, batch []Message, done func([]int64, error)) {
	var sequences []int64
	b.runOperation(func(err error) { done(sequences, err) }, func() error {
		e, err := b.checkBatch(path, batch)
		if err != nil {
			return err
		}
		for _, m := range batch {
			b.clearBusFields(&m)
			if m.ScheduledFor.IsZero() {
				m.ScheduledFor = b.storedNow()
			}
			seq := b.recordDuplicate(e, &m)
			if seq == 0 {
				seq = b.storeScheduled(e, m)
			}
			sequences = append(sequences, seq)
		}
		return nil
	})
}

// CancelScheduled removes scheduled messages. If one of them is not scheduled, it fails with ErrNotFound and
// removes none.
func (b *Bus) CancelScheduled(path string, sequences []int64, done func(error)) {
	b.runOperation(done, func() error {
		e, _, err := b.findEntity(path)
		if err != nil {
			return err
		}
		places := map[int64]messageRef{}
		due := map[int64]time.Time{}
		for _, seq := range sequences {
			m, p, ok := b.readMessage(e.main, seq)
			if !ok || m.State != Scheduled {
				return fmt.Errorf("%w: no message is scheduled with sequence number %d", ErrNotFound, seq)
			}
			places[seq], due[seq] = p, m.ScheduledFor
		}
		for _, seq := range sequences {
			if p, ok := places[seq]; ok {
				b.removeMessage(e.main, p, due[seq])
				delete(places, seq)
			}
		}
		return nil
	})
}

// storedNow returns the current time, rounded down to the millisecond, as it is stored.
func (b *Bus) storedNow() time.Time { return b.clock.Now().UTC().Truncate(time.Millisecond) }

// checkBatch returns the entity at path, or an error if the entity cannot accept the batch.
func (b *Bus) checkBatch(path string, batch []Message) (*entity, error) {
	e, part, err := b.findEntity(path)
	switch {
	case err != nil:
		return nil, err
	case e.config.Kind == Subscription || part != mainPart:
		return nil, fmt.Errorf("%w: %s cannot be sent to; send to its topic or queue", ErrNotAllowed, path)
	case !e.canSend():
		return nil, fmt.Errorf("%w: %s", ErrDisabled, path)
	case len(batch) == 0 || len(batch) > maxBatch:
		return nil, fmt.Errorf("%w: a batch has 1 to %d messages, not %d", ErrInvalid, maxBatch, len(batch))
	case b.journal.pending.bytes > maxPending:
		return nil, ErrBusy
	}
	var bytes int64
	for i := range batch {
		if err := e.checkMessage(&batch[i]); err != nil {
			return nil, err
		}
		bytes += batch[i].sizeInBytes()
	}
	if e.countMessages().Bytes+bytes > e.config.MaxBytes {
		return nil, fmt.Errorf("%w: %s holds up to %d bytes", ErrQuotaExceeded, path, e.config.MaxBytes)
	}
	return e, nil
}

func (e *entity) checkMessage(m *Message) error {
	texts := len(m.PartitionKey) + len(m.Subject) + len(m.To) + len(m.ReplyTo) + len(m.ReplyToSessionID) + len(m.CorrelationID) + len(m.ContentType)
	switch {
	case m.sizeInBytes() > e.config.MaxMessageBytes || texts > maxTexts:
		return fmt.Errorf("%w: a message has at most %d bytes", ErrTooLarge, e.config.MaxMessageBytes)
	case len(m.ID) > maxID || m.SessionID != nil && len(*m.SessionID) > maxID:
		return fmt.Errorf("%w: message and session ids have at most %d bytes", ErrInvalid, maxID)
	case m.TTL < 0:
		return fmt.Errorf("%w: a time to live is negative", ErrInvalid)
	case m.SessionID == nil && e.config.RequiresSession && e.config.Kind == Queue:
		return fmt.Errorf("%w: the entity requires sessions; send messages with a session id", ErrNotAllowed)
	}
	return nil
}

func (m *Message) sizeInBytes() int64 { return int64(len(m.ApplicationProperties) + len(m.Sections)) }

// clearBusFields clears the fields that only the bus sets.
func (b *Bus) clearBusFields(m *Message) {
	m.SequenceNumber, m.EnqueuedSequenceNumber, m.DeliveryCount, m.State = 0, 0, 0, Active
	m.EnqueuedAt, m.ExpiresAt, m.DeadLetterSource, m.Rewritten = time.Time{}, time.Time{}, "", false
	if !m.ScheduledFor.IsZero() {
		m.ScheduledFor = m.ScheduledFor.UTC().Truncate(time.Millisecond)
	}
	if m.ID == "" {
		id := b.newToken()
		m.ID, m.Rewritten = hex.EncodeToString(id[:]), true
	}
}

// storeScheduled stores a message that is not due yet.
func (b *Bus) storeScheduled(e *entity, m Message) int64 {
	m.State, m.EnqueuedAt = Scheduled, b.storedNow()
	return b.insertMessage(e.main, m)
}

// routeMessage stores a message in the entity's queue or in its subscriptions, or forwards it to a different entity.
func (b *Bus) routeMessage(e *entity, m Message, hops int) {
	m.TTL = minPositive(m.TTL, e.config.DefaultTTL)
	switch {
	case e.config.Kind == Topic:
		b.publishCopies(e, m, hops)
	case e.config.ForwardTo != "":
		b.forwardMessage(e, e.config.ForwardTo, m, hops+1)
	case e.config.RequiresSession && m.SessionID == nil:
		b.storeDeadLetter(e.deadLetters, e.main, m, hops, nullReason, nullMessage)
	default:
		m.State, m.EnqueuedAt, m.ExpiresAt = Active, b.storedNow(), time.Time{}
		if m.TTL > 0 && m.TTL < longestTTL {
			m.ExpiresAt = m.EnqueuedAt.Add(m.TTL)
		}
		b.insertMessage(e.main, m)
	}
}

func minPositive(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// assignNumber assigns a sequence number to a message that the entity forwards without storing it, unless an earlier
// entity has assigned one.
func (b *Bus) assignNumber(e *entity, m *Message) {
	if m.EnqueuedSequenceNumber == 0 {
		e.main.last++
		b.changed[e.main] = struct{}{}
		m.EnqueuedSequenceNumber = e.main.last
	}
}

// forwardMessage forwards a message to the entity at path to. If that fails, the message becomes a transfer dead
// letter.
func (b *Bus) forwardMessage(from *entity, to string, m Message, hops int) {
	b.assignNumber(from, &m)
	target := b.entities[strings.ToLower(to)]
	reason, why := ReasonForwarding, ""
	switch {
	case hops > maxHops:
		reason, why = hopsReason, fmt.Sprintf("The message was forwarded more than %d times.", maxHops)
	case target == nil || target.config.Kind == Subscription:
		why = fmt.Sprintf("The destination %s does not exist.", to)
	case !target.canSend():
		why = fmt.Sprintf("The destination %s is disabled.", to)
	case m.sizeInBytes() > target.config.MaxMessageBytes:
		why = fmt.Sprintf("The destination %s takes smaller messages only.", to)
	case target.countMessages().Bytes+m.sizeInBytes() > target.config.MaxBytes:
		why = fmt.Sprintf("The destination %s is full.", to)
	case target.config.RequiresSession && target.config.Kind == Queue && m.SessionID == nil:
		reason, why = nullReason, nullMessage
	}
	if why != "" {
		m.SequenceNumber = 0
		b.storeDeadLetter(from.transfers, from.main, m, hops, reason, why)
		return
	}
	if b.recordDuplicate(target, &m) == 0 {
		b.routeMessage(target, m, hops)
	}
}

package bus

import (
	"time"
)

// The reasons that the bus sets when it dead-letters a message.
const (
	ReasonDeliveries = "MaxDeliveryCountExceeded"
	ReasonExpired    = "TTLExpiredException"
	ReasonFilter     = "FilterEvaluationException"
	ReasonForwarding = "ForwardingFailed"
)

// The application properties that state why a message is a dead letter.
const (
	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
)

// Settle settles the messages of all tokens. If one of the locks no longer exists, it fails with ErrLockLost and
// settles none.
func (b *Bus) Settle(path string, tokens []LockToken, how Settlement, done func(error)) {
	b.runOperation(done, func() error {
		held, err := b.heldLocks(path, tokens)
		if err != nil {
			return err
		}
		for _, k := range held {
			b.settleLock(k, how)
		}
		return nil
	})
}

func (b *Bus) settleLock(k *messageLock, how Settlement) {
	if how.Outcome == Complete {
		b.removeLock(k)
		b.removeMessage(k.queue, k.place, time.Time{})
		return
	}
	m, ok := b.unlockAndRead(k)
	if !ok {
		return
	}
	if how.Outcome != Release && len(how.Properties) > 0 {
		b.mergeProperties(&m, how.Properties)
	}
	switch how.Outcome {
	case Abandon:
		b.abandonMessage(k, m)
	case Defer:
		m.State = Deferred
		k.place = b.replaceMessage(k.queue, k.place, &m)
		b.freeMessage(k, &m)
	case DeadLetter:
		b.moveToDeadLetters(k.queue, m, k.place, how.Reason, how.Description)
	default:
		b.freeMessage(k, &m)
	}
}

// abandonMessage returns a message to its position. It also increments the delivery count, except for a dead letter.
func (b *Bus) abandonMessage(k *messageLock, m Message) {
	counted := k.queue.part == mainPart
	if counted {
		m.DeliveryCount++
	}
	if counted && m.DeliveryCount >= k.queue.entity.config.MaxDeliveryCount {
		b.moveToDeadLetters(k.queue, m, k.place, ReasonDeliveries,
			"The message could not be consumed within the allowed number of deliveries.")
		return
	}
	k.place = b.replaceMessage(k.queue, k.place, &m)
	b.freeMessage(k, &m)
}

// freeMessage returns an unlocked message to its position, unless it has expired.
func (b *Bus) freeMessage(k *messageLock, m *Message) {
	switch {
	case hasExpired(m, b.clock.Now()):
		b.expireMessage(k.queue, *m, k.place)
	case k.lane != nil && m.State == Active:
		b.giveBack(k.lane, k.place.seq)
	}
}

// moveToDeadLetters makes a message a dead letter of its entity. A message that is already a dead letter stays where it
// is, and gets the new reason.
func (b *Bus) moveToDeadLetters(q *messageQueue, m Message, p messageRef, reason, description string) {
	deadLetters := q.entity.deadLetters
	if q.part == transferPart {
		deadLetters = q
	}
	b.removeMessage(q, p, time.Time{})
	b.storeDeadLetter(deadLetters, q, m, 0, reason, description)
}

// storeDeadLetter stores a message of queue from in deadLetters. If the entity forwards its dead letters, it forwards
// the message instead. hops is how often the message has already been forwarded.
func (b *Bus) storeDeadLetter(deadLetters, from *messageQueue, m Message, hops int, reason, description string) {
	changes := map[string]any{}
	if reason != "" {
		changes[propertyReason] = reason
	}
	if description != "" {
		changes[propertyDescription] = description
	}
	b.mergeProperties(&m, changes)
	if m.EnqueuedSequenceNumber == 0 {
		m.EnqueuedSequenceNumber = m.SequenceNumber
	}
	m.State, m.ExpiresAt, m.ScheduledFor = Active, time.Time{}, time.Time{}
	if from.part == mainPart {
		m.DeadLetterSource = from.entity.config.Path
	}
	if target := deadLetters.entity.config.ForwardDeadLettersTo; target != "" && from.part == mainPart && deadLetters.part == deadLetterPart {
		b.forwardMessage(deadLetters.entity, target, m, hops+1)
		return
	}
	b.insertMessage(deadLetters, m)
}

// mergeProperties applies changes to the application properties of a message. If the properties cannot be decoded, it
// replaces all of them with the changes: an error would block the message forever.
func (b *Bus) mergeProperties(m *Message, changes map[string]any) {
	if len(changes) == 0 {
		return
	}
	merged, err := b.codec.Merge(m.ApplicationProperties, changes, nil)
	if err != nil {
		if merged, err = b.codec.Merge(nil, changes, nil); err != nil {
			return // a changed value cannot be encoded
		}
	}
	m.ApplicationProperties = merged
}

package bus

import (
	"time"
)

// The reasons of dead letters that the bus sets.
const (
	ReasonDeliveries = "MaxDeliveryCountExceeded"
	ReasonExpired    = "TTLExpiredException"
	ReasonFilter     = "FilterEvaluationException"
	ReasonForwarding = "ForwardingFailed"
)

// The application properties with the reason of a dead letter.
const (
	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
)

// Settle settles the messages of all tokens. If one of the locks is not held, it fails with
// ErrLockLost and settles no message.
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

// abandonMessage returns a message to its position, and increases its delivery count unless it is a
// dead letter.
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

// moveToDeadLetters moves a message to the dead letters of its entity. If the message is a dead
// letter already, it stays in its queue and gets the new reason.
func (b *Bus) moveToDeadLetters(q *messageQueue, m Message, p messageRef, reason, description string) {
	deadLetters := q.entity.deadLetters
	if q.part == transferPart {
		deadLetters = q
	}
	b.removeMessage(q, p, time.Time{})
	b.storeDeadLetter(deadLetters, q, m, 0, reason, description)
}

// storeDeadLetter stores a message of the queue from in deadLetters, or forwards the message if the
// entity of the queue forwards its dead letters. hops is the number of times that the message was
// forwarded so far.
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

// mergeProperties changes the application properties of a message. If the properties cannot be
// decoded, the changes replace all of them, because an error would leave the message in its queue
// forever.
func (b *Bus) mergeProperties(m *Message, changes map[string]any) {
	if len(changes) == 0 {
		return
	}
	merged, err := b.codec.Merge(m.ApplicationProperties, changes, nil)
	if err != nil {
		if merged, err = b.codec.Merge(nil, changes, nil); err != nil {
			return // a changed value has no encoding
		}
	}
	m.ApplicationProperties = merged
}

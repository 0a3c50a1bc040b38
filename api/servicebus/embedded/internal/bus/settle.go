package bus

import (
	"time"
)

// Reasons of dead letters.
const (
	ReasonDeliveries = "MaxDeliveryCountExceeded"
	ReasonExpired    = "TTLExpiredException"
	ReasonFilter     = "FilterEvaluationException"
	ReasonForwarding = "ForwardingFailed"
)

// The application properties that say why a message is a dead letter.
const (
	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
)

// Settle ends the locks of all tokens, or, with ErrLockLost, of none.
func (b *Bus) Settle(path string, tokens []LockToken, how Settlement, done func(error)) {
	b.do(done, func() error {
		held, err := b.heldLocks(path, tokens)
		if err != nil {
			return err
		}
		for _, k := range held {
			b.settle(k, how)
		}
		return nil
	})
}

func (b *Bus) settle(k *lock, how Settlement) {
	if how.Outcome == Complete {
		b.unlock(k)
		b.remove(k.queue, k.place, time.Time{})
		return
	}
	m, ok := b.open(k)
	if !ok {
		return
	}
	if how.Outcome != Release && len(how.Properties) > 0 {
		b.merge(&m, how.Properties)
	}
	switch how.Outcome {
	case Abandon:
		b.abandon(k, m)
	case Defer:
		m.State = Deferred
		k.place = b.replace(k.queue, k.place, &m)
		b.free(k, &m)
	case DeadLetter:
		b.deadLetter(k.queue, m, k.place, how.Reason, how.Description)
	default:
		b.free(k, &m)
	}
}

// abandon counts a failed delivery; among dead letters nothing is counted.
func (b *Bus) abandon(k *lock, m Message) {
	counted := k.queue.part == mainPart
	if counted {
		m.DeliveryCount++
	}
	if counted && m.DeliveryCount >= k.queue.entity.config.MaxDeliveryCount {
		b.deadLetter(k.queue, m, k.place, ReasonDeliveries,
			"The message could not be consumed within the allowed number of deliveries.")
		return
	}
	k.place = b.replace(k.queue, k.place, &m)
	b.free(k, &m)
}

// free puts an unlocked message back at its place, unless its time is over.
func (b *Bus) free(k *lock, m *Message) {
	switch {
	case expired(m, b.clock.Now()):
		b.expire(k.queue, *m, k.place)
	case k.lane != nil && m.State == Active:
		b.giveBack(k.lane, k.place.seq)
	}
}

// deadLetter moves a message to where the dead letters of its queue go. A dead
// letter stays where it is, with the new reason.
func (b *Bus) deadLetter(q *queue, m Message, p place, reason, description string) {
	grave := q.entity.deadLetters
	if q.part == transferPart {
		grave = q
	}
	b.remove(q, p, time.Time{})
	b.bury(grave, q, m, 0, reason, description)
}

// bury stores a message among the dead letters of a queue's entity, or passes
// it on to where these go. hops is how often it was passed on so far.
func (b *Bus) bury(grave, from *queue, m Message, hops int, reason, description string) {
	changes := map[string]any{}
	if reason != "" {
		changes[propertyReason] = reason
	}
	if description != "" {
		changes[propertyDescription] = description
	}
	b.merge(&m, changes)
	if m.EnqueuedSequenceNumber == 0 {
		m.EnqueuedSequenceNumber = m.SequenceNumber
	}
	m.State, m.ExpiresAt, m.ScheduledFor = Active, time.Time{}, time.Time{}
	if from.part == mainPart {
		m.DeadLetterSource = from.entity.config.Path
	}
	if target := grave.entity.config.ForwardDeadLettersTo; target != "" && from.part == mainPart && grave.part == deadLetterPart {
		b.forward(grave.entity, target, m, hops+1)
		return
	}
	b.insert(grave, m)
}

// merge changes the application properties of a message. Those that cannot be
// read give way, or a message with them could never leave its queue.
func (b *Bus) merge(m *Message, changes map[string]any) {
	if len(changes) == 0 {
		return
	}
	merged, err := b.codec.Merge(m.ApplicationProperties, changes, nil)
	if err != nil {
		if merged, err = b.codec.Merge(nil, changes, nil); err != nil {
			return // a value that has no encoding
		}
	}
	m.ApplicationProperties = merged
}

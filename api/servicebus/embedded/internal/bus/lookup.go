package bus

import (
	"fmt"
	"strings"
)

// findEntity returns the entity at path, and the part of the entity that path names.
func (b *Bus) findEntity(path string) (*entity, queuePart, error) {
	if err := b.checkUsable(); err != nil {
		return nil, 0, err
	}
	name, p := strings.ToLower(path), mainPart
	if rest, ok := strings.CutSuffix(name, transferEnd); ok {
		name, p = rest, transferPart
	} else if rest, ok := strings.CutSuffix(name, deadLetterEnd); ok {
		name, p = rest, deadLetterPart
	}
	e := b.entities[name]
	if e == nil {
		return nil, 0, fmt.Errorf("%w: the messaging entity %s", ErrNotFound, path)
	}
	return e, p, nil
}

// findQueue returns the queue at path.
func (b *Bus) findQueue(path string) (*messageQueue, error) {
	e, p, err := b.findEntity(path)
	if err != nil {
		return nil, err
	}
	if e.config.Kind == Topic && p == mainPart {
		return nil, fmt.Errorf("%w: %s is a topic; receive from one of its subscriptions", ErrNotAllowed, path)
	}
	return e.listQueues()[p], nil
}

// findReceivable is like findQueue, but returns an error if the status of the entity forbids receiving.
func (b *Bus) findReceivable(path string) (*messageQueue, error) {
	q, err := b.findQueue(path)
	if err == nil && !q.entity.canReceive() {
		err = fmt.Errorf("%w: %s", ErrDisabled, path)
	}
	return q, err
}

func (e *entity) canReceive() bool {
	return e.config.Status != StatusDisabled && e.config.Status != StatusReceiveDisabled &&
		(e.topic == nil || e.topic.config.Status != StatusDisabled)
}

func (e *entity) canSend() bool {
	return e.config.Status != StatusDisabled && e.config.Status != StatusSendDisabled
}

// Counts returns the message counts of an entity. The counts of a topic are the sums over its subscriptions, plus its
// own scheduled messages.
func (b *Bus) Counts(path string) (Counts, error) {
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	e, _, err := b.findEntity(path)
	if err != nil {
		return Counts{}, err
	}
	return e.countMessages(), nil
}

func (e *entity) countMessages() Counts {
	c := Counts{
		Active: e.main.active, Deferred: e.main.deferred, Scheduled: e.main.scheduled,
		DeadLetter:         e.deadLetters.active + e.deadLetters.deferred,
		TransferDeadLetter: e.transfers.active + e.transfers.deferred,
		Subscriptions:      len(e.subscriptions),
	}
	for _, q := range e.listQueues() {
		c.Bytes += q.bytes
	}
	for _, s := range e.subscriptions {
		of := s.countMessages()
		c.Active += of.Active
		c.Deferred += of.Deferred
		c.DeadLetter += of.DeadLetter
		c.TransferDeadLetter += of.TransferDeadLetter
		c.Bytes += of.Bytes
	}
	return c
}

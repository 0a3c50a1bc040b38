package bus

import (
	"fmt"
	"strings"
)

// entity finds an entity and which of its queues a path means.
func (b *Bus) entity(path string) (*entity, part, error) {
	if err := b.usable(); err != nil {
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

// find returns the queue that a path means.
func (b *Bus) find(path string) (*queue, error) {
	e, p, err := b.entity(path)
	if err != nil {
		return nil, err
	}
	if e.config.Kind == Topic && p == mainPart {
		return nil, fmt.Errorf("%w: %s is a topic; receive from one of its subscriptions", ErrNotAllowed, path)
	}
	return e.queues()[p], nil
}

// receivable is find, unless the entity's status forbids to receive.
func (b *Bus) receivable(path string) (*queue, error) {
	q, err := b.find(path)
	if err == nil && !q.entity.receives() {
		err = fmt.Errorf("%w: %s", ErrDisabled, path)
	}
	return q, err
}

func (e *entity) receives() bool {
	return e.config.Status != StatusDisabled && e.config.Status != StatusReceiveDisabled &&
		(e.topic == nil || e.topic.config.Status != StatusDisabled)
}

func (e *entity) sends() bool {
	return e.config.Status != StatusDisabled && e.config.Status != StatusSendDisabled
}

// Counts returns what an entity holds; of a topic, what all subscriptions hold
// and what is scheduled for it.
func (b *Bus) Counts(path string) (Counts, error) {
	b.enter()
	defer b.leave()
	e, _, err := b.entity(path)
	if err != nil {
		return Counts{}, err
	}
	return e.counts(), nil
}

func (e *entity) counts() Counts {
	c := Counts{
		Active: e.main.active, Deferred: e.main.deferred, Scheduled: e.main.scheduled,
		DeadLetter:         e.deadLetters.active + e.deadLetters.deferred,
		TransferDeadLetter: e.transfers.active + e.transfers.deferred,
		Subscriptions:      len(e.subscriptions),
	}
	for _, q := range e.queues() {
		c.Bytes += q.bytes
	}
	for _, s := range e.subscriptions {
		of := s.counts()
		c.Active += of.Active
		c.Deferred += of.Deferred
		c.DeadLetter += of.DeadLetter
		c.TransferDeadLetter += of.TransferDeadLetter
		c.Bytes += of.Bytes
	}
	return c
}

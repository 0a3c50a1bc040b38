package bus

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// An entity is a queue, a topic or a topic subscription. The main queue of a topic contains its scheduled messages.
type entity struct {
	config  Entity
	number  uint32
	deleted bool

	main, deadLetters, transfers *messageQueue

	topic         *entity         // topic to which a subscription belongs
	subscriptions []*entity       // subscriptions of a topic, by path
	rules         []*compiledRule // rules of a subscription, by name
}

func newEntity(config Entity, number uint32) *entity {
	e := &entity{config: config, number: number}
	e.main, e.deadLetters, e.transfers = newQueue(e, mainPart), newQueue(e, deadLetterPart), newQueue(e, transferPart)
	return e
}

func (e *entity) listQueues() []*messageQueue {
	return []*messageQueue{e.main, e.deadLetters, e.transfers}
}

const (
	deadLetterEnd = "/$deadletterqueue"
	transferEnd   = "/$transfer" + deadLetterEnd
	subscriptions = "/subscriptions/"
)

// Create creates an entity. A new subscription has one rule, which matches all messages. Create returns ErrExists if
// the path is in use, and ErrNotFound if the topic of a subscription does not exist.
func (b *Bus) Create(config Entity, done func(error)) {
	b.runOperation(done, func() error {
		if err := config.fillDefaults(); err != nil {
			return err
		}
		name := strings.ToLower(config.Path)
		if b.entities[name] != nil {
			return fmt.Errorf("%w: %s", ErrExists, config.Path)
		}
		if len(b.entities) >= maxEntities {
			return fmt.Errorf("%w: there are %d entities, which is the limit", ErrQuotaExceeded, maxEntities)
		}
		config.CreatedAt = b.clock.Now().UTC()
		config.UpdatedAt = config.CreatedAt
		e := newEntity(config, b.newest+1)
		if !b.registerEntity(e) {
			return fmt.Errorf("%w: the topic of %s", ErrNotFound, config.Path)
		}
		b.storeEntity(e)
		if config.Kind == Subscription {
			return b.setRule(e, Rule{Name: DefaultRule})
		}
		return nil
	})
}

// Update changes the settings of an entity, except its kind and RequiresSession. If the new status
// forbids receiving, its receivers end with ErrDisabled.
func (b *Bus) Update(config Entity, done func(error)) {
	b.runOperation(done, func() error {
		e := b.entities[strings.ToLower(config.Path)]
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, config.Path)
		}
		config.Kind = cmp.Or(config.Kind, e.config.Kind)
		if err := config.fillDefaults(); err != nil {
			return err
		}
		if config.Kind != e.config.Kind || config.RequiresSession != e.config.RequiresSession {
			return fmt.Errorf("%w: an entity keeps its kind and whether it requires sessions; delete it first", ErrInvalid)
		}
		config.Path, config.CreatedAt, config.UpdatedAt = e.config.Path, e.config.CreatedAt, b.clock.Now().UTC()
		e.config = config
		b.storeEntity(e)
		for _, of := range append([]*entity{e}, e.subscriptions...) {
			if !of.canReceive() {
				b.endReceiversOf(of.main, ErrDisabled)
			}
		}
		return nil
	})
}

// Delete removes an entity and its messages. Deleting a topic also deletes its subscriptions. Receivers end with
// ErrNotFound.
func (b *Bus) Delete(path string, done func(error)) {
	b.runOperation(done, func() error {
		e := b.entities[strings.ToLower(path)]
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, path)
		}
		for _, s := range slices.Clone(e.subscriptions) {
			b.eraseEntity(s)
		}
		b.eraseEntity(e)
		return nil
	})
}

func (b *Bus) eraseEntity(e *entity) {
	name := strings.ToLower(e.config.Path)
	e.deleted = true
	delete(b.entities, name)
	if e.topic != nil {
		e.topic.subscriptions = slices.DeleteFunc(e.topic.subscriptions, func(s *entity) bool { return s == e })
	}
	for _, q := range e.listQueues() {
		b.endReceiversOf(q, ErrNotFound)
		for _, k := range slices.Collect(maps.Values(q.locked)) {
			b.removeLock(k)
		}
		b.cancelDeadline(q.maintenance)
	}
	b.journal.removeKey(entityKey(name))
	b.journal.putKey(binary.BigEndian.AppendUint32([]byte{tablePurge}, e.number), []byte{})
	b.purges = append(b.purges, e.number)
}

// Entity returns the configuration of an entity. The path may also be the path of its dead-letter queue.
func (b *Bus) Entity(path string) (Entity, error) {
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	e, _, err := b.findEntity(path)
	if err != nil {
		return Entity{}, err
	}
	return e.config, nil
}

// Entities returns all entities, sorted by path.
func (b *Bus) Entities() []Entity {
	b.lockAndCatchUp()
	defer b.scheduleAndUnlock()
	var all []Entity
	for _, name := range slices.Sorted(maps.Keys(b.entities)) {
		all = append(all, b.entities[name].config)
	}
	return all
}

// fillDefaults sets defaults, and returns an error if a setting is invalid.
func (c *Entity) fillDefaults() error {
	c.LockDuration = cmp.Or(c.LockDuration, time.Minute)
	c.MaxDeliveryCount = cmp.Or(c.MaxDeliveryCount, 10)
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<30)
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 256<<10)
	c.Status = cmp.Or(c.Status, StatusActive)
	name := strings.ToLower(c.Path)
	topic, sub, isSub := strings.Cut(name, subscriptions)
	switch {
	case len(name) == 0 || len(name) > maxPath || strings.Contains(name, "$") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/"):
		return fmt.Errorf("%w: a path has 1 to %d bytes, no $, and no / at its ends", ErrInvalid, maxPath)
	case isSub != (c.Kind == Subscription) || isSub && (topic == "" || sub == "" || strings.Contains(sub, "/")):
		return fmt.Errorf("%w: only the path of a subscription has the form topic/Subscriptions/name", ErrInvalid)
	case c.Kind != Queue && c.Kind != Topic && c.Kind != Subscription:
		return fmt.Errorf("%w: kind %q; use queue, topic or subscription", ErrInvalid, c.Kind)
	case !slices.Contains([]Status{StatusActive, StatusDisabled, StatusSendDisabled, StatusReceiveDisabled}, c.Status):
		return fmt.Errorf("%w: status %q", ErrInvalid, c.Status)
	case c.LockDuration < 0 || c.LockDuration > 5*time.Minute:
		return fmt.Errorf("%w: a lock lasts up to 5 minutes, not %s", ErrInvalid, c.LockDuration)
	case c.DefaultTTL < 0 || c.DuplicateWindow < 0 || c.MaxBytes < 0 || c.MaxMessageBytes < 0:
		return fmt.Errorf("%w: a duration or size is negative", ErrInvalid)
	case slices.ContainsFunc([]string{c.ForwardTo, c.ForwardDeadLettersTo}, func(to string) bool {
		return strings.EqualFold(to, c.Path) || isSub && strings.EqualFold(to, topic)
	}):
		return fmt.Errorf("%w: %s forwards to itself", ErrInvalid, c.Path)
	case c.ForwardTo != "" && (c.RequiresSession || c.Kind == Topic):
		return fmt.Errorf("%w: a topic, or an entity that requires sessions, cannot forward", ErrInvalid)
	}
	return nil
}

package bus

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// An entity is a queue, a topic or a topic subscription. What is scheduled for
// a topic waits in its main queue.
type entity struct {
	config  Entity
	number  uint32
	deleted bool

	main, deadLetters, transfers *queue

	topic         *entity   // of a subscription
	subscriptions []*entity // of a topic, by path
	rules         []*rule   // of a subscription, by name
}

// An entityRecord is how an entity is stored.
type entityRecord struct {
	Number uint32
	Config Entity
}

func newEntity(config Entity, number uint32) *entity {
	e := &entity{config: config, number: number}
	e.main, e.deadLetters, e.transfers = newQueue(e, mainPart), newQueue(e, deadLetterPart), newQueue(e, transferPart)
	return e
}

func (e *entity) queues() []*queue { return []*queue{e.main, e.deadLetters, e.transfers} }

const (
	format        = 1
	deadLetterEnd = "/$deadletterqueue"
	transferEnd   = "/$transfer" + deadLetterEnd
	subscriptions = "/subscriptions/"
)

var formatKey = []byte{tableMeta, 'f'}

// load reads what a former bus left in the store.
func (b *Bus) load() error {
	j := b.journal
	if found := number(j.get(formatKey)); found != format {
		if found != 0 {
			return fmt.Errorf("%w: it has format %d, this version reads %d", disk.ErrFormat, found, format)
		}
		j.put(formatKey, appendNumber(nil, format))
	}
	var damaged error
	j.scan([]byte{tableEntity}, []byte{tableEntity + 1}, func(k, v []byte) bool {
		var r entityRecord
		if damaged = json.Unmarshal(v, &r); damaged != nil {
			damaged = fmt.Errorf("%w: entity %q: %w", disk.ErrDamaged, k[1:], damaged)
			return false
		}
		if !b.enlist(newEntity(r.Config, r.Number)) {
			damaged = fmt.Errorf("%w: subscription %q has no topic", disk.ErrDamaged, k[1:])
		}
		return damaged == nil
	})
	j.scan([]byte{tablePurge}, []byte{tablePurge + 1}, func(k, _ []byte) bool {
		n := binary.BigEndian.Uint32(k[1:])
		b.purges = append(b.purges, n)
		b.newest = max(b.newest, n)
		return true
	})
	if err := cmp.Or(j.failure, damaged); err != nil {
		return err
	}
	b.purgeSome()
	for _, e := range b.entities {
		for _, q := range e.queues() {
			q.restore(j.get(key(tableCounters, q.id, 0)))
			b.remindFirst(q)
		}
		if err := b.loadRules(e); err != nil {
			return err
		}
	}
	return j.failure
}

// enlist makes an entity known; a subscription needs its topic.
func (b *Bus) enlist(e *entity) bool {
	name := strings.ToLower(e.config.Path)
	if e.config.Kind == Subscription {
		topic, _, _ := strings.Cut(name, subscriptions)
		if e.topic = b.entities[topic]; e.topic == nil || e.topic.config.Kind != Topic {
			return false
		}
		e.topic.subscriptions = append(e.topic.subscriptions, e)
		slices.SortFunc(e.topic.subscriptions, func(a, b *entity) int { return cmp.Compare(a.config.Path, b.config.Path) })
	}
	b.entities[name] = e
	b.newest = max(b.newest, e.number)
	return true
}

// Create makes an entity. A subscription begins with one rule, which lets all
// pass. It fails with ErrExists, or with ErrNotFound without its topic.
func (b *Bus) Create(config Entity, done func(error)) {
	b.do(done, func() error {
		if err := config.complete(); err != nil {
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
		if !b.enlist(e) {
			return fmt.Errorf("%w: the topic of %s", ErrNotFound, config.Path)
		}
		b.store(e)
		if config.Kind == Subscription {
			return b.setRule(e, Rule{Name: DefaultRule})
		}
		return nil
	})
}

func (b *Bus) store(e *entity) {
	record, err := json.Marshal(entityRecord{e.number, e.config})
	if err != nil {
		b.journal.failure = err // cannot be: it has no such fields
	}
	b.journal.put(entityKey(strings.ToLower(e.config.Path)), record)
}

// Update changes an entity, but not its kind and whether it has sessions.
// Receivers of an entity that is no longer received from end with ErrDisabled.
func (b *Bus) Update(config Entity, done func(error)) {
	b.do(done, func() error {
		e := b.entities[strings.ToLower(config.Path)]
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, config.Path)
		}
		config.Kind = cmp.Or(config.Kind, e.config.Kind)
		if err := config.complete(); err != nil {
			return err
		}
		if config.Kind != e.config.Kind || config.RequiresSession != e.config.RequiresSession {
			return fmt.Errorf("%w: an entity keeps its kind and whether it requires sessions; delete it first", ErrInvalid)
		}
		config.Path, config.CreatedAt, config.UpdatedAt = e.config.Path, e.config.CreatedAt, b.clock.Now().UTC()
		e.config = config
		b.store(e)
		for _, of := range append([]*entity{e}, e.subscriptions...) {
			if !of.receives() {
				b.endReceiversOf(of.main, ErrDisabled)
			}
		}
		return nil
	})
}

// Delete removes an entity with its messages, and a topic with its
// subscriptions. Receivers end with ErrNotFound.
func (b *Bus) Delete(path string, done func(error)) {
	b.do(done, func() error {
		e := b.entities[strings.ToLower(path)]
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, path)
		}
		for _, s := range slices.Clone(e.subscriptions) {
			b.erase(s)
		}
		b.erase(e)
		return nil
	})
}

func (b *Bus) erase(e *entity) {
	name := strings.ToLower(e.config.Path)
	e.deleted = true
	delete(b.entities, name)
	if e.topic != nil {
		e.topic.subscriptions = slices.DeleteFunc(e.topic.subscriptions, func(s *entity) bool { return s == e })
	}
	for _, q := range e.queues() {
		b.endReceiversOf(q, ErrNotFound)
		for _, k := range slices.Collect(maps.Values(q.locked)) {
			b.unlock(k)
		}
		b.cancel(q.chores)
	}
	b.journal.remove(entityKey(name))
	b.journal.put(binary.BigEndian.AppendUint32([]byte{tablePurge}, e.number), []byte{})
	b.purges = append(b.purges, e.number)
}

// purgeStep bounds what one commit removes of a deleted entity.
const purgeStep = 1000

// purgeSome removes a part of what deleted entities left. The commit of that
// calls for the next part.
func (b *Bus) purgeSome() {
	if len(b.purges) == 0 {
		return
	}
	number, removed := b.purges[0], 0
	for _, table := range tablesOfQueue {
		prefix := binary.BigEndian.AppendUint32([]byte{table}, number)
		var keys [][]byte
		b.journal.scan(prefix, after(prefix), func(k, _ []byte) bool {
			keys = append(keys, append([]byte{}, k...))
			return removed+len(keys) < purgeStep
		})
		for _, k := range keys {
			b.journal.remove(k)
		}
		if removed += len(keys); removed >= purgeStep {
			return
		}
	}
	b.journal.remove(binary.BigEndian.AppendUint32([]byte{tablePurge}, number))
	b.purges = b.purges[1:]
}

// Entity returns the configuration of an entity, also by the path of one of its
// dead-letter queues.
func (b *Bus) Entity(path string) (Entity, error) {
	b.enter()
	defer b.leave()
	e, _, err := b.entity(path)
	if err != nil {
		return Entity{}, err
	}
	return e.config, nil
}

// Entities returns all entities, by path.
func (b *Bus) Entities() []Entity {
	b.enter()
	defer b.leave()
	var all []Entity
	for _, name := range slices.Sorted(maps.Keys(b.entities)) {
		all = append(all, b.entities[name].config)
	}
	return all
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

// complete fills in the defaults, and refuses what makes no sense.
func (c *Entity) complete() error {
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
		return fmt.Errorf("%w: the path of a subscription, and of nothing else, is topic/Subscriptions/name", ErrInvalid)
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

package bus

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// Format is the version of the layout of a store.
const Format = 1

// storeFormat returns the format of a store.
func storeFormat(version string) *disk.Format {
	key := []byte{tableMeta, 'f'}
	return &disk.Format{Number: Format, Version: version, Key: key, IsNew: func(s disk.State) bool { return s.Get(key) == nil }}
}

// An entityRecord is the stored form of an entity.
type entityRecord struct {
	Number uint32
	Config Entity
}

// loadEntities reads the entities in the store.
func (b *Bus) loadEntities() error {
	j := b.journal
	var damaged error
	j.scanRange([]byte{tableEntity}, []byte{tableEntity + 1}, func(k, v []byte) bool {
		var r entityRecord
		if damaged = json.Unmarshal(v, &r); damaged != nil {
			damaged = fmt.Errorf("%w: entity %q: %w", disk.ErrDamaged, k[1:], damaged)
			return false
		}
		if !b.registerEntity(newEntity(r.Config, r.Number)) {
			damaged = fmt.Errorf("%w: subscription %q has no topic", disk.ErrDamaged, k[1:])
		}
		return damaged == nil
	})
	j.scanRange([]byte{tablePurge}, []byte{tablePurge + 1}, func(k, _ []byte) bool {
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
		for _, q := range e.listQueues() {
			q.decodeCounters(j.getValue(newKey(tableCounters, q.id, 0)))
			b.scheduleFirst(q)
		}
		if err := b.loadRules(e); err != nil {
			return err
		}
	}
	return j.failure
}

// registerEntity adds an entity to the bus. It returns false for a subscription without a topic.
func (b *Bus) registerEntity(e *entity) bool {
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

func (b *Bus) storeEntity(e *entity) {
	record, err := json.Marshal(entityRecord{e.number, e.config})
	if err != nil {
		b.journal.failure = err // cannot happen: an entityRecord can always be encoded
	}
	b.journal.putKey(entityKey(strings.ToLower(e.config.Path)), record)
}

// purgeStep limits the keys of deleted entities that one commit removes.
const purgeStep = 1000

// purgeSome removes a part of the data of deleted entities. The commit of this part starts the next one.
func (b *Bus) purgeSome() {
	if len(b.purges) == 0 {
		return
	}
	number, removed := b.purges[0], 0
	for _, table := range tablesOfQueue {
		prefix := binary.BigEndian.AppendUint32([]byte{table}, number)
		var keys [][]byte
		b.journal.scanRange(prefix, endOfPrefix(prefix), func(k, _ []byte) bool {
			keys = append(keys, append([]byte{}, k...))
			return removed+len(keys) < purgeStep
		})
		for _, k := range keys {
			b.journal.removeKey(k)
		}
		if removed += len(keys); removed >= purgeStep {
			return
		}
	}
	b.journal.removeKey(binary.BigEndian.AppendUint32([]byte{tablePurge}, number))
	b.purges = b.purges[1:]
}

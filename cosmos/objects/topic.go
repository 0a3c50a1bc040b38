package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Topic reads and removes the unpublished changes of the current state of objects.
type Topic struct {
	store   *Store
	observe func(domain.ObjectChange)
}

var _ repository.ObjectTopic = (*Topic)(nil)

// Topic returns the topic of s, or nil if Options.Topic is false.
func (s *Store) Topic() *Topic { return s.topic }

var stateDocument = client.DocumentKind{Name: "state-change", Format: 1}

// A stateDoc is a domain.ObjectChange that was not published yet. It is created in one batch with the
// changed object, and deleted once the change is in the stream of the topic. Only its id is indexed.
type stateDoc struct {
	ID           string    `json:"id"`
	PartitionKey string    `json:"partitionKey"`
	Kind         string    `json:"kind"`
	Bucket       string    `json:"bucket"`
	Key          string    `json:"key"`
	Number       int64     `json:"number"` // version of the change
	Event        string    `json:"event"`
	At           int64     `json:"at"` // time of the change, in microseconds since 1970
	Row          rowFields `json:"row"`
	client.FormatNumber
}

func (*stateDoc) DocumentKind() client.DocumentKind { return stateDocument }

func newStateDoc(partition string, c *domain.ObjectChange) *stateDoc {
	return &stateDoc{
		ID: stateID(c.Name.Key(), c.Version), PartitionKey: partition, Kind: stateDocument.Name, Bucket: c.Name.Bucket(), Key: c.Name.Key(),
		Number: c.Version, Event: string(c.Event), At: c.At.UnixMicro(), Row: encodeRow(&c.Row),
	}
}

func (d *stateDoc) change() (c domain.ObjectChange, err error) {
	var p documentParser
	c.Name, err = domain.ParseObjectName(d.Bucket, d.Key)
	p.keepError(err)
	c.Event, err = domain.ParseObjectStateEvent(d.Event)
	p.keepError(err)
	c.Version, c.At, c.Row = d.Number, time.UnixMicro(d.At).UTC(), p.parseRow(&d.Row)
	if p.err != nil {
		return c, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return c, nil
}

// Observe implements [repository.ObjectTopic].
func (t *Topic) Observe(f func(domain.ObjectChange)) { t.observe = f }

// removedTogether is the limit for the changes that one batch removes.
const removedTogether = 50

// Remove implements [repository.ObjectTopic]. A crash leaves changes that are published again; the stream
// drops the duplicates.
func (t *Topic) Remove(ctx context.Context, changes []domain.ObjectChange) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove changes: %w", err)
	}
	c := t.store.client.Begin("remove changes")
	ids := make(map[string][]string) // ids of changes, by partition
	for i := range changes {
		name := changes[i].Name
		partition, err := t.store.partitionOf(ctx, c, name)
		if err != nil {
			return c.Outcome("remove changes of objects", err)
		}
		ids[partition] = append(ids[partition], stateID(name.Key(), changes[i].Version))
	}
	var failed error
	for partition, all := range ids {
		for part := range slices.Chunk(all, removedTogether) {
			failed = errors.Join(failed, t.remove(ctx, c, partition, part))
		}
	}
	return c.Outcome("remove changes of objects", failed)
}

// remove removes changes of a partition. If the batch is refused because a change does not exist, remove
// deletes the changes one by one.
func (t *Topic) remove(ctx context.Context, c *client.Call, partition string, ids []string) error {
	if len(ids) > 1 {
		_, err := c.Batch(ctx, t.store.objects, partition, false, func(b *azcosmos.TransactionalBatch) {
			for _, id := range ids {
				b.DeleteItem(id, nil)
			}
		})
		if !client.IsRefused(err) && !client.IsNotFound(err) {
			return err
		}
	}
	for _, id := range ids {
		if err := c.DeleteIfExists(ctx, t.store.objects, partition, id); err != nil {
			return err
		}
	}
	return nil
}

// Unpublished implements [repository.ObjectTopic]. It selects the changes by the prefix of their ids.
func (t *Topic) Unpublished(ctx context.Context, before time.Time, limit int) (found []domain.ObjectChange, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	c := t.store.client.Begin("look for changes")
	q := c.QueryAllPartitions(t.store.objects, stateDocument.Name,
		"SELECT * FROM c WHERE c.id >= '"+statePrefix+"' AND c.id < '"+behindStates+"' AND (c.at < @before OR c.at > @ahead)",
		azcosmos.QueryParameter{Name: "@before", Value: before.UnixMicro()},
		azcosmos.QueryParameter{Name: "@ahead", Value: before.Add(repository.MaxClockAhead).UnixMicro()})
	var damage error
	for !q.IsDone() && len(found) < limit {
		items, err := q.Next(ctx, limit)
		if q.SkipDamage(err) {
			damage = err
			continue
		}
		if err != nil {
			return found, c.Outcome("look for changes", err)
		}
		for _, item := range items {
			var d stateDoc
			err := q.Decode(item, &d)
			if err == nil {
				var change domain.ObjectChange
				if change, err = d.change(); err == nil {
					found = append(found, change)
				}
			}
			if err != nil {
				damage = err
			}
		}
	}
	return found[:min(limit, len(found))], c.Outcome("look for changes", damage)
}

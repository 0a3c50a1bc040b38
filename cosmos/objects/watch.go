package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.StoredChanges = (*Store)(nil)

var changeDocument = client.DocumentKind{Name: "change", Format: 1}

// An objectChangeDoc is a domain.Change of an object that was not published yet. It is created in one
// batch with the changed object, and deleted once the change is in the stream of the object. Only its id
// is indexed.
type objectChangeDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Resource     string `json:"resource"` // key of the resource
	Number       int64  `json:"number"`   // version of the change
	Event        string `json:"event"`
	At           int64  `json:"at"` // time of the change, in microseconds since 1970
	client.FormatNumber
}

func (*objectChangeDoc) DocumentKind() client.DocumentKind { return changeDocument }

func newChangeDoc(partition, key string, c *domain.Change) *objectChangeDoc {
	return &objectChangeDoc{
		ID: changeID(key, c.Version), PartitionKey: partition, Kind: changeDocument.Name,
		Resource: c.Resource.Key(), Number: c.Version, Event: string(c.Event), At: c.At.UnixMicro(),
	}
}

func (d *objectChangeDoc) change() (c domain.Change, err error) {
	var p documentParser
	c.Resource, err = domain.ParseResourceKey(d.Resource)
	p.keepError(err)
	c.Event, err = domain.ParseChangeEvent(d.Event)
	p.keepError(err)
	c.Version, c.At = d.Number, time.UnixMicro(d.At).UTC()
	if p.err != nil {
		return c, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return c, nil
}

// newChange returns the change for the watches of an object. It returns nil if the object is not watched,
// or if changes do not affect its watches.
func (s *Store) newChange(changes *domain.ObjectChanges) *domain.Change {
	if changes.Event == "" {
		return nil
	}
	o := &changes.Object
	return &domain.Change{
		Resource: domain.ObjectResourceOf(o.Name), Version: o.Changes, Event: changes.Event,
		At: s.opts.Clock().UTC().Truncate(time.Microsecond),
	}
}

// Observe implements [repository.StoredChanges].
func (s *Store) Observe(f func(domain.Change)) { s.observe = f }

// MarkWatched implements [repository.StoredChanges]. It patches the document, so it acts on the current
// state. An update that read the object before the patch is refused, because its write is conditional.
func (s *Store) MarkWatched(ctx context.Context, r domain.Resource, _ bool) (version int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("watch object: %w", err)
	}
	c := s.client.Begin("mark watched")
	partition, name, err := s.watchedPartition(ctx, c, r)
	if err != nil {
		return 0, c.Outcome("watch object", err)
	}
	err = c.Retry(ctx, func() error {
		ops := client.NewPatch(objectDocument, "c.live = true")
		ops.AppendSet("/watched", true)
		var d objectDoc
		// A crash after this write leaves a marked object without a watch. Its changes are published, but no
		// watch receives them.
		err := c.Patch(ctx, s.objects, partition, objectID(name.Key()), ops, &d)
		switch {
		case err == nil:
			version = d.Changes
		case client.IsNotFound(err):
			err = noSuchObject()
		case client.StatusOf(err) == http.StatusPreconditionFailed:
			err = s.checkDeleted(ctx, c, name)
		}
		return err
	})
	return version, c.Outcome("watch object", err)
}

// checkDeleted returns the error for an object that could not be marked. If the object has a current row,
// another attempt may succeed, and the error is client.ErrStale. Otherwise it is NotFound.
func (s *Store) checkDeleted(ctx context.Context, c *client.Call, name domain.ObjectName) error {
	d, err := s.readObject(ctx, c, name)
	switch {
	case err != nil:
		return err
	case d.Live:
		return client.ErrStale
	}
	return noSuchObject()
}

// noSuchObject returns a NotFound error that does not disclose whether the object existed before.
func noSuchObject() error {
	return domain.Errorf(domain.NotFound, "there is no such object, or it was deleted")
}

// watchedPartition returns the name of the object that r identifies, and its partition; see partitionOf.
func (s *Store) watchedPartition(ctx context.Context, c *client.Call, r domain.Resource) (string, domain.ObjectName, error) {
	name, err := r.Object()
	if err != nil {
		return "", name, err
	}
	partition, err := s.partitionOf(ctx, c, name)
	return partition, name, err
}

// partitionOf returns the partition of an object. It fails with NotFound if no event of its bucket is stored.
func (s *Store) partitionOf(ctx context.Context, c *client.Call, name domain.ObjectName) (string, error) {
	var n int
	err := c.Retry(ctx, func() (err error) {
		if n, err = s.shardsOf(ctx, c, name.Bucket()); n == 0 && err == nil {
			return s.confirmNoBucket(ctx, c, name.Bucket())
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return shardKey(name.Bucket(), shardOf(name.Key(), n)), nil
}

// confirmNoBucket returns a NotFound error if a bucket does not exist, and client.ErrNotYetVisible if only
// a stale read did not find it. It sends a patch whose condition is never met: the patch acts on the
// current state and changes nothing.
func (s *Store) confirmNoBucket(ctx context.Context, c *client.Call, bucket string) error {
	ops := client.NewPatch(bucketDocument, "c.shards = 0")
	ops.AppendSet("/kind", bucketDocument.Name)
	err := c.Patch(ctx, s.objects, bucketKey(bucket), shardsID, ops, &struct{}{})
	switch {
	case client.IsNotFound(err):
		return noSuchObject()
	case client.StatusOf(err) == http.StatusPreconditionFailed:
		return client.ErrNotYetVisible
	}
	return err
}

// Changes implements [repository.StoredChanges].
func (s *Store) Changes(ctx context.Context, r domain.Resource) ([]domain.Change, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	c := s.client.Begin("read changes")
	partition, name, err := s.watchedPartition(ctx, c, r)
	if err != nil {
		return nil, c.Outcome("read the changes of an object", err)
	}
	p := &params{}
	from, to := changeIDs(name.Key())
	text := "SELECT * FROM c WHERE c.id >= " + p.add(from) + " AND c.id < " + p.add(to) + " ORDER BY c.id"
	docs, err := client.All[objectChangeDoc](ctx, c.Query(s.objects, partition, text, p.all...))
	changes := make([]domain.Change, 0, len(docs))
	for _, d := range docs {
		change, damage := d.change()
		if damage != nil {
			err = errors.Join(err, damage)
			continue
		}
		changes = append(changes, change)
	}
	return changes, c.Outcome("read the changes of an object", err)
}

// RemoveChange implements [repository.StoredChanges].
func (s *Store) RemoveChange(ctx context.Context, change domain.Change) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("remove change: %w", err)
	}
	c := s.client.Begin("remove change")
	partition, name, err := s.watchedPartition(ctx, c, change.Resource)
	if err == nil {
		// A crash before this write leaves a change that is published again; the stream drops the duplicate.
		err = c.DeleteIfExists(ctx, s.objects, partition, changeID(name.Key(), change.Version))
	}
	return c.Outcome("remove the change of an object", err)
}

// Unpublished implements [repository.StoredChanges]. It selects the changes by the prefix of their ids.
func (s *Store) Unpublished(ctx context.Context, before time.Time, limit int) (found []domain.Resource, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("look for changes: %w", err)
	}
	c := s.client.Begin("look for changes")
	q := c.QueryAllPartitions(s.objects, changeDocument.Name,
		"SELECT c.resource FROM c WHERE c.id >= '"+changePrefix+"' AND c.id < '"+behindChanges+"' AND (c.at < @before OR c.at > @ahead)",
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
			var d objectChangeDoc
			err := q.Decode(item, &d)
			if err == nil {
				var r domain.Resource
				if r, err = domain.ParseResourceKey(d.Resource); err == nil && !slices.Contains(found, r) {
					found = append(found, r)
				}
			}
			if err != nil {
				damage = err
			}
		}
	}
	return found[:min(limit, len(found))], c.Outcome("look for changes", damage)
}

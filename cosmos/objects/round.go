package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	roundTimeout  = 30 * time.Second
	maxOperations = 90 // of a batch; Cosmos permits 100
)

// errSplit reports a batch of which the halves are to be stored, each by itself.
var errSplit = errors.New("the batch is to be halved")

// A shard gathers the requests of callers for one partition.
type shard struct {
	store  *Store
	key    string
	leader *client.Leader[*request]
}

// shard returns the shard of a partition.
func (s *Store) shard(key string) *shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards[key] == nil {
		h := &shard{store: s, key: key}
		h.leader = client.NewLeader[*request]("ingest", roundTimeout, h.round, func() {})
		s.shards[key] = h
	}
	return s.shards[key]
}

// round stores the requests of the callers that wait.
func (h *shard) round(ctx context.Context) {
	names := make(map[domain.ObjectName]int)
	requests := h.leader.Take(func(r *request) bool {
		if len(names)+len(r.objects) > maxNames && len(names) > 0 {
			return false
		}
		for _, g := range r.objects {
			if names[g.name] > 0 && names[g.name]+len(g.events) > maxEvents {
				return false
			}
		}
		for _, g := range r.objects {
			names[g.name] += len(g.events)
		}
		return true
	})
	var groups []*objectEvents
	for _, r := range requests {
		for _, g := range r.objects {
			private := *g // the caller may leave while the round is under way
			groups = append(groups, &private)
		}
	}
	h.storeGroups(ctx, groups, []string{h.store.client.NewID()})
	for _, r := range requests {
		r.stored, groups = groups[:len(r.objects)], groups[len(r.objects):]
		h.leader.Complete(r, nil)
	}
}

// storeGroups stores groups in one batch, or in several if that is refused. ids are the id of the batch
// and those of the batches that it comes from.
func (h *shard) storeGroups(ctx context.Context, groups []*objectEvents, ids []string) {
	c := h.store.client.Begin("ingest")
	err := c.Retry(ctx, func() error { return h.tryBatch(ctx, c, groups, ids) })
	if errors.Is(err, errSplit) {
		for _, half := range halves(groups) {
			h.storeGroups(ctx, half, append([]string{h.store.client.NewID()}, ids...))
		}
		return
	}
	if errors.Is(err, client.ErrPartitionFull) {
		err = fmt.Errorf("%w: %w", repository.ErrFull, c.Outcome("ingest", err))
	} else {
		err = c.Outcome("ingest", err)
	}
	if err != nil {
		for _, g := range groups {
			g.err = err
		}
	}
}

// halves returns two parts of groups, if possible each with all groups of its objects.
func halves(groups []*objectEvents) [][]*objectEvents {
	names, of := byName(groups)
	if len(names) == 1 {
		n := len(groups) / 2
		return [][]*objectEvents{groups[:n], groups[n:]}
	}
	var parts [2][]*objectEvents
	for i, name := range names {
		part := &parts[2*i/len(names)]
		*part = append(*part, of[name]...)
	}
	return parts[:]
}

// tryBatch reads, decides and writes once.
func (h *shard) tryBatch(ctx context.Context, c *client.Call, groups []*objectEvents, ids []string) error {
	names, of := byName(groups)
	found, err := h.readAll(ctx, c, names)
	if err != nil {
		return err
	}
	var plans []*plan
	operations := 0
	for _, name := range names {
		p, err := h.plan(ctx, c, name, found[objectID(name.Key())], of[name], ids)
		if err != nil {
			return err
		}
		if !p.changes.IsEmpty {
			plans = append(plans, p)
			operations += p.operations()
		}
	}
	switch {
	case len(plans) == 0:
		return nil
	case operations > maxOperations && len(groups) > 1:
		return errSplit
	}
	_, err = c.Batch(ctx, h.store.objects, h.key, false, func(b *azcosmos.TransactionalBatch) {
		for _, p := range plans {
			p.addTo(b, h.key)
		}
	})
	switch {
	case (client.IsRefused(err) || errors.Is(err, client.ErrPartitionFull)) && len(names) > 1:
		return errSplit // a full partition still accepts what does not grow
	case client.IsRefused(err):
		return client.ErrStale
	}
	return err
}

// readAll returns the documents of objects by id.
func (h *shard) readAll(ctx context.Context, c *client.Call, names []domain.ObjectName) (map[string]*objectDoc, error) {
	found := make(map[string]*objectDoc)
	if len(names) == 1 { // a point read is cheaper
		d := &objectDoc{}
		_, err := c.Read(ctx, h.store.objects, h.key, objectID(names[0].Key()), d)
		switch {
		case client.IsNotFound(err):
			return found, nil
		case err != nil:
			return nil, err
		}
		found[d.ID] = d
		return found, nil
	}
	var in params
	for _, name := range names {
		in.add(objectID(name.Key()))
	}
	docs, err := client.All[objectDoc](ctx, c.Query(h.store.objects, h.key, "SELECT * FROM c WHERE c.id IN ("+in.list()+")", in.all...))
	for _, d := range docs {
		found[d.ID] = d
	}
	return found, err
}

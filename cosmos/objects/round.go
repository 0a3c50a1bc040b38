package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	roundTimeout  = 30 * time.Second
	maxOperations = 90      // limit for the operations of a batch; Cosmos permits 100
	maxBytes      = 1 << 20 // limit for the size of the documents of a batch; Cosmos permits requests of 2 MB
	// maxMoves is the limit for the spilled rows that a batch moves in advance. It is so low that the
	// batch, which also writes copies and spills rows, does not exceed maxOperations.
	maxMoves = 24
	// maxRefusals is the limit for the refusals of a batch. After the last refusal, the object that
	// caused it is stored separately, because other nodes may change this object faster than a large
	// batch can be written. The limit is above 1, because competing nodes usually succeed alternately,
	// and smaller batches cost more for each event.
	maxRefusals = 4
	// gatherRounds is the number of rounds after a refusal in which a store waits for further requests.
	gatherRounds = 256
	maxGather    = 20 * time.Millisecond // limit for the wait of a round
)

// errSplit reports that a batch must be split.
var errSplit = errors.New("the batch must be split")

// A refusedError reports a batch that was refused because of an object: another writer has changed the
// object, or an earlier attempt has stored the batch.
type refusedError struct{ name domain.ObjectName }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the batch was refused for object %q", domain.Shorten(e.name.Key()))
}

// Unwrap returns client.ErrStale, so the next attempt reads the objects again.
func (e *refusedError) Unwrap() error { return client.ErrStale }

// A shard collects the requests of callers for one partition.
type shard struct {
	store  *Store
	key    string
	leader *client.Leader[*shardRequest]

	// Number of requests and duration of the last round; only the caller that leads uses these fields.
	requests int
	took     time.Duration
}

// shard returns the shard with a partition key.
func (s *Store) shard(key string) *shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards[key] == nil {
		h := &shard{store: s, key: key}
		h.leader = client.NewLeader[*shardRequest]("ingest", roundTimeout, h.runRound, func() {})
		s.shards[key] = h
	}
	return s.shards[key]
}

// runRound stores the requests of the waiting callers.
func (h *shard) runRound(ctx context.Context) {
	h.awaitRequests(ctx)
	began := h.store.opts.Clock()
	defer func() { h.took = h.store.opts.Clock().Sub(began) }()
	names := make(map[domain.ObjectName]int)
	requests := h.leader.Take(func(r *shardRequest) bool {
		if len(names)+len(r.objects) > h.store.names && len(names) > 0 {
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
	h.requests = len(requests)
	var groups []*objectEvents
	for _, r := range requests {
		for _, g := range r.objects {
			private := *g // the caller may still change its group: its context may end during the round
			groups = append(groups, &private)
		}
	}
	h.storeGroups(ctx, groups, []string{h.store.client.NewID()}, false)
	for _, r := range requests {
		r.stored, groups = groups[:len(r.objects)], groups[len(r.objects):]
		h.leader.Complete(r, nil)
	}
}

// awaitRequests waits for further requests if the last round had several requests, and if a batch was
// refused recently because another node stores events of the same objects. Two such nodes serve half of
// the callers each. Without the wait, each node would make as many rounds as a single node, with half as
// many events. The wait takes half the time of the last round, so its cost is small compared with a
// round.
func (h *shard) awaitRequests(ctx context.Context) {
	if h.requests > 1 && h.store.gathering.Load() > 0 {
		h.store.gathering.Add(-1)
		client.Sleep(ctx, min(h.took/2, maxGather))
	}
}

// storeGroups stores groups in one batch, or in several batches if the batch is too large or refused. ids
// are the ids of the batch and of the batches from which it was split. mayBeStored reports whether a batch
// from which it was split may be stored.
func (h *shard) storeGroups(ctx context.Context, groups []*objectEvents, ids []string, mayBeStored bool) {
	c := h.store.client.Begin("ingest")
	refusals := 0
	var parts [][]*objectEvents
	err := c.Retry(ctx, func() error {
		err := h.tryBatch(ctx, c, groups, ids)
		refused, isRefused := errors.AsType[*refusedError](err)
		if isRefused {
			refusals++
			h.store.gathering.Store(gatherRounds)
		}
		switch {
		case errors.Is(err, errSplit):
			parts = splitInHalf(groups)
		case isRefused && refusals == maxRefusals:
			parts = isolateObject(groups, refused.name)
		}
		if len(parts) > 1 {
			return errSplit
		}
		return err
	})
	mayBeStored = mayBeStored || c.InDoubt()
	if errors.Is(err, errSplit) {
		for _, part := range parts {
			h.storeGroups(ctx, part, append([]string{h.store.client.NewID()}, ids...), mayBeStored)
		}
		return
	}
	isFull := client.IsFull(err)
	if err = c.Outcome("ingest", err); err == nil {
		return
	}
	if isFull && !mayBeStored {
		err = fmt.Errorf("%w: %w", repository.ErrPartitionFull, err)
	}
	if mayBeStored && domain.KindOf(err) != domain.Damaged {
		err = domain.Errorf(domain.Uncertain, "%w", err)
	}
	for _, g := range groups {
		g.err = err
	}
}

// isolateObject returns two parts of groups: all groups of other objects, and the groups of the object
// name. If all groups are of this object, it returns one part.
func isolateObject(groups []*objectEvents, name domain.ObjectName) [][]*objectEvents {
	var own, others []*objectEvents
	for _, g := range groups {
		if g.name == name {
			own = append(own, g)
		} else {
			others = append(others, g)
		}
	}
	if len(others) == 0 {
		return [][]*objectEvents{own}
	}
	return [][]*objectEvents{others, own}
}

// splitInHalf returns two parts of groups. The groups of one object are in the same part, unless all
// groups are of this object.
func splitInHalf(groups []*objectEvents) [][]*objectEvents {
	names, of := groupsByName(groups)
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

// tryBatch makes one attempt to read the objects, decide their changes and write the batch.
func (h *shard) tryBatch(ctx context.Context, c *client.Call, groups []*objectEvents, ids []string) error {
	names, of := groupsByName(groups)
	found, err := h.readAll(ctx, c, names)
	if err != nil {
		return err
	}
	var plans []*objectPlan
	operations, bytes := 0, 0
	for _, name := range names {
		p, err := h.plan(ctx, c, name, found[objectID(name.Key())], of[name], ids)
		if err != nil {
			return err
		}
		if !p.changes.IsEmpty {
			plans = append(plans, p)
			operations += len(p.operations)
			bytes += p.bytes
		}
	}
	isLarge := operations > maxOperations || bytes > maxBytes
	switch {
	case len(plans) == 0:
		return nil
	case isLarge && len(groups) > 1:
		return errSplit
	case isLarge && len(plans[0].changes.Moved) > 0:
		return h.moveInAdvance(ctx, c, plans[0])
	}
	err = h.write(ctx, c, plans...)
	switch {
	case client.IsFull(err) && len(names) > 1:
		return errSplit // a smaller batch may succeed: a full partition accepts writes that do not need more space
	case client.StatusOf(err) == http.StatusRequestEntityTooLarge && len(groups) > 1:
		return errSplit
	case client.IsRefused(err):
		return &refusedError{refusedObject(err, plans)}
	}
	return err
}

// moveInAdvance moves some of the rows that a plan moves, in a separate batch. The batch needs no id,
// because a repeated batch does not move a row again. After a success, moveInAdvance returns
// client.ErrStale, because the object has changed.
func (h *shard) moveInAdvance(ctx context.Context, c *client.Call, large *objectPlan) error {
	object, err := large.doc.object()
	if err != nil {
		return err
	}
	p, err := h.decide(ctx, c, &object, large.doc, nil, func(u *domain.ObjectUpdate) error {
		u.Move(large.changes.Moved, maxMoves)
		return nil
	})
	if err != nil {
		return err
	}
	err = h.write(ctx, c, p)
	switch {
	case client.IsRefused(err):
		return client.ErrStale
	case err != nil:
		return err
	}
	c.AddRetries(1)
	return client.ErrStale
}

// refusedObject returns the object for which a batch of plans was refused.
func refusedObject(err error, plans []*objectPlan) domain.ObjectName {
	at := 0
	if f, is := errors.AsType[*client.Failure](err); is {
		at = f.Operation()
	}
	for _, p := range plans {
		if at -= len(p.operations); at < 0 {
			return p.changes.Object.Name
		}
	}
	return plans[0].changes.Object.Name
}

// readAll reads the documents of objects, and returns them by id.
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

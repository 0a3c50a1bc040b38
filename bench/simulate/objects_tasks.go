package simulate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An objectSource lists the bucket for a node. A page is read some time after the request, and the response arrives
// some time after the read. The request may fail, and the node may die before the response arrives.
type objectSource struct {
	*memory.Source
	node   *objectNode
	client baseClient
}

// List implements [repository.Source].
func (s *objectSource) List(ctx context.Context, bucket, prefix, cursor string, limit int) (repository.SourcePage, error) {
	const fails, dies = "no listing", "its node dies"
	failed, ok := s.client.awaitTurn("lists behind "+strconv.Quote(cursor), scheduler.Fault{Name: fails}, scheduler.Fault{Name: dies})
	if failed == dies {
		s.node.kill()
		s.node.sim.MarkReached("a node died within a crawl")
	}
	if !ok || failed != "" {
		return repository.SourcePage{}, domain.Errorf(domain.Unavailable, "the store does not respond")
	}
	s.changeSometimes()
	page, err := s.Source.List(ctx, bucket, prefix, cursor, limit)
	s.changeSometimes()
	_, _ = s.client.awaitTurn("has listed")
	return page, err
}

// changeSometimes changes the bucket while it is listed.
func (s *objectSource) changeSometimes() {
	if s.client.rng.IntN(3) == 0 {
		s.node.sim.changeObject(s.client.rng)
	}
}

// newLedgerService returns the ledger service of a node, which uses the given store.
func (sim *objectSimulation) newLedgerService(store *objectstore.Store, source repository.Source, options objectstore.Options) *ledger.Service {
	return ledger.New(ledger.Ports{Objects: store, Jobs: store, Source: source}, ledger.Options{
		Clock: options.Clock, Random: options.Random, JSONPatch: jsonpatch.Apply, CrawlPage: 1 + int(sim.options.Seed%3),
	})
}

// An objectClient repeats a task.
type objectClient struct {
	baseClient
	sim *objectSimulation
}

// A clientTask is a task that a client repeats with random nodes.
type clientTask struct {
	who, what string
	pause     time.Duration // maximum pause before each repetition
	do        func(p *objectClient, n *objectNode) error
}

// clientTasks returns the tasks of clients other than the delivery of events.
func (sim *objectSimulation) clientTasks() (tasks []clientTask) {
	if sim.plan.changes > 0 {
		tasks = append(tasks, clientTask{"bucket", "changes", 20 * time.Second, (*objectClient).changeBucket})
	}
	if sim.plan.crawls && !sim.plan.crawlsOnce() {
		tasks = append(tasks, clientTask{"crawler", "starts a crawl", 10 * time.Second, (*objectClient).startCrawl})
	}
	if sim.plan.patches {
		tasks = append(tasks, clientTask{"user", "patches", 20 * time.Second, (*objectClient).patchRow})
	}
	if sim.plan.retention > 0 {
		tasks = append(tasks, clientTask{"sweeper", "sweeps", 20 * time.Second, (*objectClient).sweepShards})
	}
	return tasks
}

// runTask repeats a task until all events are delivered.
func (p *objectClient) runTask(task clientTask) {
	for p.pause(time.Duration(1+p.rng.IntN(int(task.pause/time.Millisecond))) * time.Millisecond) {
		select {
		case <-p.sim.delivered:
			return
		default:
		}
		if _, ok := p.awaitTurn(task.what); !ok {
			return
		}
		n := p.sim.nodeAt(p.rng.IntN(objectNodes))
		if n == nil {
			continue
		}
		if err := task.do(p, n); err != nil {
			p.sim.Fail(fmt.Errorf("%s, at %s: %w", p.who, n.who, err))
		}
	}
}

// changeBucket changes an object of the bucket and queues the events of the change for delivery.
func (p *objectClient) changeBucket(*objectNode) error {
	p.sim.changeObject(p.rng)
	return nil
}

func (sim *objectSimulation) changeObject(rng random.Source) {
	o := sim.buckets[rng.IntN(len(sim.buckets))]
	sim.omu.Lock()
	defer sim.omu.Unlock()
	if sim.changes == 0 {
		return
	}
	events := o.bucket.Act(sim.clock.nextTime())
	for i := range events {
		o.noteEvent(&events[i])
	}
	sim.listObject(o)
	sim.messages = append(sim.messages, sim.mixMessages(o.reportsOf(events))...)
	sim.changes--
	sim.closeDelivered()
}

// listObject updates the state of an object that the source lists.
func (sim *objectSimulation) listObject(o *observedObject) {
	version, isMarker, eTag, exists := o.bucket.Latest()
	if !exists {
		sim.source.Remove(objectBucket, o.name.Key())
		return
	}
	sim.source.Put(objectBucket, repository.SourceObject{
		Key: o.name.Key(), Version: version, Marker: isMarker, ObjectFacts: domain.ObjectFacts{ETag: domain.QuoteETag(eTag)},
	})
}

// startCrawl starts a crawl, and sometimes stops the crawl.
func (p *objectClient) startCrawl(n *objectNode) error {
	stops := p.rng.IntN(6) == 0
	n.call(func(ctx context.Context) {
		job, err := n.ledger.StartCrawl(ctx, objectBucket, "")
		if err == nil && stops {
			_, err = n.ledger.StopJob(ctx, job.ID)
		}
		if _, runs := errors.AsType[*repository.JobRunsError](err); runs {
			p.sim.MarkReached("a crawl was refused, because one ran")
			return
		}
		p.noteFailure(ctx, err)
	})
	return nil
}

// crawlOnce starts one crawl, and waits for its end.
func (p *objectClient) crawlOnce() {
	for isStarted := false; !isStarted || p.sim.observer.Running() > 0; {
		if !p.pause(time.Second) {
			return
		}
		n := p.sim.nodeAt(p.rng.IntN(objectNodes))
		if isStarted || n == nil {
			continue
		}
		if _, ok := p.awaitTurn("starts the only crawl"); !ok {
			return
		}
		var err error
		hasEnded := n.call(func(ctx context.Context) {
			_, failed := n.ledger.StartCrawl(ctx, objectBucket, "")
			p.noteFailure(ctx, failed)
			err = failed
		})
		isStarted = hasEnded && err == nil || p.sim.observer.Running() > 0
	}
}

// noteFailure fails the simulation if no injected fault explains err.
func (p *objectClient) noteFailure(ctx context.Context, err error) {
	switch domain.KindOf(err) {
	case domain.Unavailable, domain.Busy, domain.Uncertain, domain.NotFound:
		return
	default:
	}
	if err != nil && ctx.Err() == nil {
		p.sim.Fail(fmt.Errorf("%s: %w", p.who, err))
	}
}

// patchRow patches the current row of an object with two operations. Sometimes it adds a third operation that fails.
func (p *objectClient) patchRow(n *objectNode) error {
	sim := p.sim
	name := sim.buckets[p.rng.IntN(len(sim.buckets))].name
	fails := p.rng.IntN(4) == 0
	member := fmt.Sprintf("%s-%d", p.who, p.rng.Uint64()%1_000_000)
	text := fmt.Sprintf(`[{"op":"add","path":"/%s-a","value":1},{"op":"add","path":"/%s-b","value":2}`, member, member)
	patch := objects.Patch{Attributes: map[string]string{member + "-a": "1", member + "-b": "2"}}
	if fails {
		text += `,{"op":"test","path":"/none","value":1}`
		patch.Attributes[member+"-none"] = "1" // no operation sets this attribute, so the observer reports a stored patch
	}
	parsed, err := ledger.ParsePatch([]byte(text + "]"))
	if err != nil {
		return err
	}
	number := sim.observer.Expect(patch)
	n.call(func(ctx context.Context) {
		_, err := n.ledger.Amend(ctx, ledger.RowID{Name: name}, parsed)
		kind := domain.KindOf(err)
		switch applied := sim.observer.Applied(number); {
		case err == nil && fails:
			sim.Fail(fmt.Errorf("L10: an invalid patch of %s succeeded", name.Key()))
		case err == nil && applied == 0, kind == domain.Invalid && applied > 0:
			sim.Fail(fmt.Errorf("L10: a patch of %s returned %w, but was applied %d times", name.Key(), err, applied))
		case kind == domain.Invalid && fails:
		default:
			p.noteFailure(ctx, err)
		}
	})
	return nil
}

// sweepShards forgets old rows, shard by shard and page by page.
func (p *objectClient) sweepShards(n *objectNode) error {
	limit := 1 + p.rng.IntN(3)
	n.call(func(ctx context.Context) {
		shards, err := n.store.Shards(ctx)
		for i := 0; i < len(shards) && err == nil; i++ {
			for page := (repository.SweptObjects{More: true}); page.More && err == nil; {
				page, err = n.store.Forget(ctx, shards[i], page.After, limit)
				p.noteFailure(ctx, page.Failure)
			}
		}
		p.noteFailure(ctx, err)
	})
	return nil
}

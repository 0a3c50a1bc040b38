package simulate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/bench/simulate/invariants/objects"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An objectSource is the bucket as a node lists it. A page is listed some time after it was asked for, and
// comes some time after that. It may fail, and the node may die meanwhile.
type objectSource struct {
	*memory.Source
	node  *objectNode
	party party
}

// List implements [repository.Source].
func (s *objectSource) List(ctx context.Context, bucket, prefix, cursor string, limit int) (repository.SourcePage, error) {
	const fails, dies = "no listing", "its node dies"
	failed, ok := s.party.turn("lists behind "+strconv.Quote(cursor), fault{name: fails}, fault{name: dies})
	if failed == dies {
		s.node.kill()
		s.node.l.reached("a node died within a crawl")
	}
	if !ok || failed != "" {
		return repository.SourcePage{}, domain.Errorf(domain.Unavailable, "the store does not answer")
	}
	s.changeNow()
	page, err := s.Source.List(ctx, bucket, prefix, cursor, limit)
	s.changeNow()
	_, _ = s.party.turn("has listed")
	return page, err
}

// changeNow has the bucket change while it is listed, now and then.
func (s *objectSource) changeNow() {
	if s.party.d.n(3) == 0 {
		s.node.l.change(s.party.d)
	}
}

// newLedger returns the use cases of a node over its store.
func (l *objectWorld) newLedger(store *objectstore.Store, source repository.Source, options objectstore.Options) *ledger.Service {
	return ledger.New(ledger.Ports{Objects: store, Jobs: store, Source: source}, ledger.Options{
		Clock: options.Clock, Random: options.Random, JSONPatch: jsonpatch.Apply, CrawlPage: 1 + int(l.o.Seed%3),
	})
}

// An objectParty does a task now and then.
type objectParty struct {
	party
	l *objectWorld
}

// An objectTask is what a party does with a node.
type objectTask struct {
	who, what string
	pause     time.Duration // up to, before each time
	do        func(p *objectParty, n *objectNode) error
}

// tasks returns what parties do besides the delivery of events.
func (l *objectWorld) tasks() (tasks []objectTask) {
	if l.plan.changes > 0 {
		tasks = append(tasks, objectTask{"bucket", "changes", 20 * time.Second, (*objectParty).change})
	}
	if l.plan.crawls && !l.plan.crawlsOnce() {
		tasks = append(tasks, objectTask{"crawler", "starts a crawl", 10 * time.Second, (*objectParty).crawl})
	}
	if l.plan.patches {
		tasks = append(tasks, objectTask{"user", "patches", 20 * time.Second, (*objectParty).patch})
	}
	if l.plan.retention > 0 {
		tasks = append(tasks, objectTask{"sweeper", "sweeps", 20 * time.Second, (*objectParty).sweep})
	}
	return tasks
}

// work does a task again and again until all events are delivered.
func (p *objectParty) work(task objectTask) {
	for p.pause(time.Duration(1+p.d.n(int(task.pause/time.Millisecond))) * time.Millisecond) {
		select {
		case <-p.l.delivered:
			return
		default:
		}
		if _, ok := p.turn(task.what); !ok {
			return
		}
		n := p.l.objectNode(p.d.n(objectNodes))
		if n == nil {
			continue
		}
		if err := task.do(p, n); err != nil {
			p.l.fail(fmt.Errorf("%s, at %s: %w", p.who, n.who, err))
		}
	}
}

// change does something to an object of the bucket, which then lists it so. What it reports is delivered.
func (p *objectParty) change(*objectNode) error {
	p.l.change(p.d)
	return nil
}

func (l *objectWorld) change(d dice) {
	o := l.buckets[d.n(len(l.buckets))]
	l.omu.Lock()
	defer l.omu.Unlock()
	if l.changes == 0 {
		return
	}
	events := o.bucket.Act(l.clock.now())
	for i := range events {
		o.note(&events[i])
	}
	l.show(o)
	l.messages = append(l.messages, l.mix(o.reports(events))...)
	l.changes--
	l.closeDelivered()
}

// show has the bucket list an object as it is.
func (l *objectWorld) show(o *observedObject) {
	version, isMarker, eTag, exists := o.bucket.Latest()
	if !exists {
		l.source.Remove(objectBucket, o.name.Key())
		return
	}
	l.source.Put(objectBucket, repository.SourceObject{
		Key: o.name.Key(), Version: version, Marker: isMarker, ObjectFacts: domain.ObjectFacts{ETag: domain.QuoteETag(eTag)},
	})
}

// crawl starts a crawl, and sometimes stops it.
func (p *objectParty) crawl(n *objectNode) error {
	stops := p.d.n(6) == 0
	n.call(func(ctx context.Context) {
		job, err := n.ledger.StartCrawl(ctx, objectBucket, "")
		if err == nil && stops {
			_, err = n.ledger.StopJob(ctx, job.ID)
		}
		if _, runs := errors.AsType[*repository.JobRunsError](err); runs {
			p.l.reached("a crawl was refused, because one ran")
			return
		}
		p.noteFailure(ctx, err)
	})
	return nil
}

// crawlOnce has nodes do one crawl, and waits for its end.
func (p *objectParty) crawlOnce() {
	for isStarted := false; !isStarted || p.l.observer.Running() > 0; {
		if !p.pause(time.Second) {
			return
		}
		n := p.l.objectNode(p.d.n(objectNodes))
		if isStarted || n == nil {
			continue
		}
		if _, ok := p.turn("starts the only crawl"); !ok {
			return
		}
		var err error
		hasEnded := n.call(func(ctx context.Context) {
			_, failed := n.ledger.StartCrawl(ctx, objectBucket, "")
			p.noteFailure(ctx, failed)
			err = failed
		})
		isStarted = hasEnded && err == nil || p.l.observer.Running() > 0
	}
}

// noteFailure fails the world if no fault of it explains an error.
func (p *objectParty) noteFailure(ctx context.Context, err error) {
	switch domain.KindOf(err) {
	case domain.Unavailable, domain.Busy, domain.Uncertain, domain.NotFound:
		return
	default:
	}
	if err != nil && ctx.Err() == nil {
		p.l.fail(fmt.Errorf("%s: %w", p.who, err))
	}
}

// patch patches the current row of an object by two operations, or by three of which the last one fails.
func (p *objectParty) patch(n *objectNode) error {
	l := p.l
	name := l.buckets[p.d.n(len(l.buckets))].name
	fails := p.d.n(4) == 0
	member := fmt.Sprintf("%s-%d", p.who, p.d.next()%1_000_000)
	text := fmt.Sprintf(`[{"op":"add","path":"/%s-a","value":1},{"op":"add","path":"/%s-b","value":2}`, member, member)
	patch := objects.Patch{Attributes: map[string]string{member + "-a": "1", member + "-b": "2"}}
	if fails {
		text += `,{"op":"test","path":"/none","value":1}`
		patch.Attributes[member+"-none"] = "1" // so that no patch says what it would leave behind
	}
	parsed, err := ledger.ParsePatch([]byte(text + "]"))
	if err != nil {
		return err
	}
	number := l.observer.Expect(patch)
	n.call(func(ctx context.Context) {
		_, err := n.ledger.Amend(ctx, ledger.RowID{Name: name}, parsed)
		kind := domain.KindOf(err)
		switch applied := l.observer.Applied(number); {
		case err == nil && fails:
			l.fail(fmt.Errorf("L10: a patch of %s that fails has succeeded", name.Key()))
		case err == nil && applied == 0, kind == domain.Invalid && applied > 0:
			l.fail(fmt.Errorf("L10: a patch of %s was answered with %w, and was applied %d times", name.Key(), err, applied))
		case kind == domain.Invalid && fails:
		default:
			p.noteFailure(ctx, err)
		}
	})
	return nil
}

// sweep forgets what a page of objects of each shard permits.
func (p *objectParty) sweep(n *objectNode) error {
	limit := 1 + p.d.n(3)
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

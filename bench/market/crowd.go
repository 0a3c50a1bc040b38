package market

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/bench/load"
)

// A recipientCrowd is recipients that share a hub. Each has one cabinet, peeks by its own clock,
// and dequeues what it was given. It does one after the other, as an actor does; a
// Peek that is due before the last is done waits for that, and its time counts from
// when it was due.
type recipientCrowd struct {
	Group
	caller  *marketClient
	seed    uint64
	members []*crowdMember
	saves   atomic.Uint64
}

// A crowdMember is what the world outside knows of one.
type crowdMember struct {
	name string
	busy chan struct{} // has room for what it does at once

	mu    sync.Mutex
	stock Stock
	waits []waiting // the oldest first
}

// waiting is a Save of which not all has been fetched.
type waiting struct {
	upTo  int // events saved, with it
	since time.Time
}

func newCrowd(c *marketClient, seed uint64, g Group) *recipientCrowd {
	crowd := &recipientCrowd{Group: g, caller: c, seed: seed}
	for i := range g.Size {
		name := fmt.Sprintf("%s-%04d", cmp.Or(strings.TrimSpace(g.Kind), "actor"), i)
		crowd.members = append(crowd.members, &crowdMember{name: name, busy: make(chan struct{}, cmp.Or(g.AtOnce, 1))})
	}
	return crowd
}

// loadStreams are Saves, each for one of the crowd, and a Peek of each member in each
// period.
func (c *recipientCrowd) loadStreams() []load.Stream {
	random := rand.New(rand.NewPCG(c.seed, 0))
	streams := []load.Stream{{
		Arrivals: load.Poisson(c.Events/float64(c.Batch), rand.New(rand.NewPCG(c.seed, 1))), Task: c.sendNext,
	}}
	for _, m := range c.members {
		phase := time.Duration(random.Int64N(int64(c.Period)))
		streams = append(streams, load.Stream{
			Arrivals: load.Every(c.Period, phase),
			Task:     func(ctx context.Context) load.Outcome { return c.fetchWaiting(ctx, m) },
		})
	}
	return streams
}

// greetAll sends each member a batch.
func (c *recipientCrowd) greetAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, m := range c.members {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(c.seed, 1<<32+uint64(i))) //nolint:gosec // positive
			if err := c.sendBatch(ctx, m, random); err != nil {
				return fmt.Errorf("send %s its first events: %w", m.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// sendNext sends the next batch. The n-th batch depends only on the seed and n.
func (c *recipientCrowd) sendNext(ctx context.Context) load.Outcome {
	random := rand.New(rand.NewPCG(c.seed, 2+c.saves.Add(1)))
	err := c.sendBatch(ctx, c.members[random.IntN(len(c.members))], random)
	return load.Outcome{Kind: c.Kind + "save", Failed: failureOf(err)}
}

func (c *recipientCrowd) sendBatch(ctx context.Context, m *crowdMember, random *rand.Rand) error {
	m.isSent(c.Batch)
	err := c.caller.sendEvents(ctx, appendEvents(nil, m.name, c.Batch, random))
	if err == nil {
		m.isSaved(c.Batch)
	}
	return err
}

// fetchWaiting fetches what there is for m. That nothing is there is counted apart: it is
// quicker.
func (c *recipientCrowd) fetchWaiting(ctx context.Context, m *crowdMember) load.Outcome {
	m.busy <- struct{}{} // the one ahead ends when ctx does
	bundle, events, err := c.caller.fetchBundle(ctx, m.name)
	outcome := load.Outcome{Kind: c.Kind + "peek", Failed: failureOf(err)}
	if bundle == "" {
		<-m.busy
		if err == nil {
			outcome.Kind = c.Kind + "peek of nothing"
		}
		return outcome
	}
	outcome.Then = func(ctx context.Context) load.Outcome {
		defer func() { <-m.busy }()
		err := c.caller.dequeueBundle(ctx, m.name, bundle)
		if err == nil {
			m.noteStored(events)
		}
		return load.Outcome{Kind: c.Kind + "dequeue", Failed: failureOf(err)}
	}
	return outcome
}

// drainAll fetches what is left for every member.
func (c *recipientCrowd) drainAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, m := range c.members {
		g.Go(func() error {
			for {
				bundle, events, err := c.caller.fetchBundle(ctx, m.name)
				if err == nil && bundle != "" {
					err = c.caller.dequeueBundle(ctx, m.name, bundle)
				}
				if err != nil {
					return fmt.Errorf("fetch what is left for %s: %w", m.name, err)
				}
				if bundle == "" {
					return nil
				}
				m.noteStored(events)
			}
		})
	}
	return g.Wait()
}

// isSent notes a Save that is made now.
func (m *crowdMember) isSent(events int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stock.Sent += events
}

// isSaved notes a Save that was answered.
func (m *crowdMember) isSaved(events int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stock.Saved += events
	m.waits = append(m.waits, waiting{m.stock.Saved, time.Now()})
	m.dropSeen()
}

// noteStored notes that events are in safe hands. A Peek may be faster than the answer to
// the Save.
func (m *crowdMember) noteStored(events int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stock.Fetched += events
	m.dropSeen()
}

func (m *crowdMember) dropSeen() {
	for len(m.waits) > 0 && m.waits[0].upTo <= m.stock.Fetched {
		m.waits = m.waits[1:]
	}
}

// currentStock is the stock of all members, and for how long the oldest event has waited that
// was not fetched.
func (c *recipientCrowd) currentStock() (all Stock, oldest time.Duration) {
	for _, m := range c.members {
		m.mu.Lock()
		all.Add(m.stock)
		if len(m.waits) > 0 {
			oldest = max(oldest, time.Since(m.waits[0].since))
		}
		m.mu.Unlock()
	}
	return all, oldest
}

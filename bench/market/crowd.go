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

// A recipientCrowd is a group of recipients of a hub. Each recipient has one cabinet, peeks
// periodically, and dequeues the bundle that it received, one request at a time. A Peek that is
// due before the previous one has ended waits, and its latency counts from its due time.
type recipientCrowd struct {
	Group
	caller  *marketClient
	seed    uint64
	members []*crowdMember
	saves   atomic.Uint64
}

// A crowdMember holds the numbers of events that the clients have sent to a recipient and fetched.
type crowdMember struct {
	name string
	busy chan struct{} // limits the concurrent operations of the recipient

	mu    sync.Mutex
	stock Stock
	waits []waitingSave // Saves whose events were not all fetched, the oldest first
}

// A waitingSave is a Save with events that were not fetched yet.
type waitingSave struct {
	upTo  int // number of events saved so far, including this Save
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

// loadStreams returns a stream of Saves, each for one member, and a periodic stream
// of Peeks for each member.
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

// sendFirstBatches sends each member a first batch.
func (c *recipientCrowd) sendFirstBatches(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, m := range c.members {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(c.seed, 1<<32+uint64(i))) //nolint:gosec // the index is positive
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
	m.recordSend(c.Batch)
	err := c.caller.sendEvents(ctx, appendEvents(nil, m.name, c.Batch, random))
	if err == nil {
		m.recordSaved(c.Batch)
	}
	return err
}

// fetchWaiting fetches the next bundle of m. A Peek that returns no bundle is faster, so it is
// counted as a separate kind of operation.
func (c *recipientCrowd) fetchWaiting(ctx context.Context, m *crowdMember) load.Outcome {
	m.busy <- struct{}{} // the operation before it ends when ctx ends
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

// drainAll fetches the remaining events of every member.
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

// recordSend records a Save that is being sent.
func (m *crowdMember) recordSend(events int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stock.Sent += events
}

// recordSaved records a Save that was acknowledged.
func (m *crowdMember) recordSaved(events int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stock.Saved += events
	m.waits = append(m.waits, waitingSave{m.stock.Saved, time.Now()})
	m.dropSeen()
}

// noteStored records that events are stored. A Peek may return them before the response to the
// Save.
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

// currentStock returns the stock of all members, and the age of the oldest event that was not
// fetched.
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

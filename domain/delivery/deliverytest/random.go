package deliverytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Random tests the promises with random faults, once for each seed. Up to three nodes serve the
// same receivers. With even seeds, all nodes own all receivers. With odd seeds the nodes share
// them, and with every second odd seed some nodes do not take over from dead nodes. Nodes are
// killed and frozen, their calls of stores fail, and the clock is set. Finally, one node without
// faults finishes all deliveries.
func Random(t *testing.T, seeds int, open func(t *testing.T, clock *Clock) repositorytest.PushStores) {
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWorld(t, func(clock *Clock) repositorytest.PushStores { return open(t, clock) })
				w.Shared = seed%2 == 1
				(&randomRun{World: w, mayWait: seed%4 == 3, rng: rand.New(rand.NewPCG(uint64(seed), 19))}).run() //nolint:gosec // not negative
			})
		})
	}
}

type randomRun struct {
	*World
	mu  sync.Mutex
	rng *rand.Rand

	all       []*Receiver
	nodes     [3]*Node
	published int
	mayWait   bool // some nodes may have the option NoTakeover
	isCalm    bool
	wasSet    bool // the clock was set
	upsets    int  // number of times that nodes ended, were frozen, or took over cursors
}

func (r *randomRun) chance(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

func (r *randomRun) uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.Uint64()
}

// randomDelay is the delay before each attempt of the random receivers.
const randomDelay = time.Minute

func (r *randomRun) addReceivers() {
	for range 4 {
		attempts := 1 + r.chance(4)
		delays := make([]time.Duration, attempts)
		for i := range delays {
			delays[i] = randomDelay
		}
		receiver := &Receiver{Policy: domain.QueuePolicy(delays, attempts), Concurrency: 1 + r.chance(5)}
		if r.chance(3) == 0 {
			receiver.Policy.BreakAfter, receiver.Policy.BreakFor = 3, 30*time.Second
		}
		if r.chance(2) == 0 {
			receiver.Matches = func(e *repository.Entry) bool { return e.Position.Number%3 != 1 }
		}
		fails, slowness := r.chance(5), time.Duration(1+r.chance(40))*500*time.Millisecond
		receiver.Answer = func(ctx context.Context, c delivery.Call) domain.Answer {
			a := After(slowness, 200)(ctx, c)
			if a.Status == 200 && !r.isCalm && r.chance(10) < 2*fails {
				a.Status = 500
				if r.chance(10) == 0 {
					a.Status, a.RetryAfter = 429, 20*time.Second
				}
			}
			return a
		}
		r.all = append(r.all, r.Add(receiver))
	}
}

// drawFaults draws the faults of a call of the stores: an error before it, or after it.
func (r *randomRun) drawFaults() (before, after error) {
	if r.isCalm {
		return nil, nil
	}
	switch r.chance(40) {
	case 0:
		return domain.Errorf(domain.Busy, "too many requests"), nil
	case 1:
		return domain.Errorf(domain.Unavailable, "not reached"), nil
	case 2:
		return domain.Errorf(domain.Uncertain, "request lost"), nil
	case 3, 4:
		return nil, domain.Errorf(domain.Uncertain, "reply lost")
	}
	return nil, nil
}

func (r *randomRun) startNode(i int) {
	r.upsets++
	opts := delivery.Options{Workers: 2 + r.chance(8), Queues: 4, Random: r.uint64, CheckInterval: time.Minute, Window: int64(1 + r.chance(100_000))}
	opts.NoTakeover = r.mayWait && r.chance(2) == 0
	r.nodes[i] = r.Start(opts)
	r.nodes[i].line.mu.Lock()
	r.nodes[i].line.fault = r.drawFaults
	r.nodes[i].line.mu.Unlock()
}

func (r *randomRun) publishMessage() {
	messages := repositorytest.Messages(1 + r.chance(12))
	for i := range messages {
		messages[i].Priority = []int{0, 0, 4, 9}[r.chance(4)]
	}
	appended, err := r.Stores.Streams.Append(context.Background(), r.Stream, messages)
	require.NoError(r, err)
	r.published += len(messages)
	if n := r.nodes[r.chance(3)]; n != nil {
		n.Published(r.Stream, messages, appended)
	}
}

func (r *randomRun) run() {
	r.addReceivers()
	r.startNode(0)
	for range 40 {
		i := r.chance(3)
		switch op := r.chance(12); {
		case op < 5:
			r.publishMessage()
		case op == 5 && r.nodes[i] == nil:
			r.startNode(i)
		case op == 6 && r.nodes[i] != nil:
			r.nodes[i].Kill()
			r.nodes[i] = nil
			r.upsets++
		case op == 7 && r.nodes[i] != nil:
			r.upsets++
			thaw := r.nodes[i].Freeze()
			<-time.After(time.Duration(r.chance(90)) * time.Second)
			thaw()
		case op == 8 && r.chance(4) == 0:
			r.wasSet = true
			r.Clock.Set(time.Duration(r.chance(120)-60) * time.Minute)
		case op == 9 && r.nodes[i] != nil:
			r.nodes[i].Stop()
			r.nodes[i] = nil
		case op == 10 && r.nodes[i] != nil && r.mayWait:
			r.nodes[i].Changed(r.all[r.chance(len(r.all))].ID)
		}
		<-time.After(time.Duration(r.chance(40)) * time.Second)
	}
	for i, n := range r.nodes {
		if n != nil && r.chance(2) == 0 {
			n.Kill()
		} else if n != nil {
			n.Stop()
		}
		r.nodes[i] = nil
	}
	r.Clock.Set(0)
	r.isCalm = true
	r.startNode(0)
	<-time.After(6 * time.Hour)
	r.nodes[0].Stop()
	for _, receiver := range r.all {
		r.checkReceiver(receiver)
	}
}

func (r *randomRun) checkReceiver(receiver *Receiver) {
	w := r.World
	s := w.Standing(receiver)
	n := s.Counters
	require.Zero(w, s.Outstanding(), "P1: every delivery ends: %+v at %v", s, w.Clock.Now())
	require.EqualValues(w, r.published, n.Triggered+n.Filtered, "P1")
	require.EqualValues(w, n.Triggered, n.Delivered+n.Errored, "P1, P2")
	if receiver.Matches == nil {
		require.Zero(w, n.Filtered)
	}
	taken := receiver.Taken()
	dead := w.DeadLetters(receiver)
	require.EqualValues(w, len(dead), n.Errored)
	require.GreaterOrEqual(w, len(taken), int(n.Delivered), "P4: delivered is what the receiver has taken")
	require.LessOrEqual(w, len(taken), int(n.Triggered))
	calls := receiver.Calls()
	type attempt struct {
		entry  domain.EntryID
		number int
	}
	first := make(map[attempt]time.Time)
	for _, c := range calls {
		require.Less(w, c.Attempt, receiver.Policy.Attempts, "P8: none beyond the budget")
		this := attempt{c.Entry, c.Attempt}
		if _, ok := first[this]; !ok {
			first[this] = c.At
		}
		if c.Attempt > 0 && !r.wasSet {
			before, ok := first[attempt{c.Entry, c.Attempt - 1}]
			require.True(w, ok)
			require.False(w, c.At.Before(before.Add(randomDelay)), "P8: no attempt before its due time")
		}
	}
	for _, d := range dead {
		if d.Attempts < receiver.Policy.Attempts {
			require.GreaterOrEqual(w, r.upsets, domain.MaxClaims, "P8, P9: it has spent its budget, or nodes have ended")
		}
	}
	untraced := len(calls) - int(n.Attempts)
	require.GreaterOrEqual(w, untraced, 0, "P8: an attempt is counted once")
	require.LessOrEqual(w, untraced, receiver.Concurrency*w.takeoversOf(receiver), "P5: calls without a trace")
	require.LessOrEqual(w, receiver.MaxConcurrent(), receiver.Concurrency*len(r.nodes), "P11: each node keeps the concurrency")
}

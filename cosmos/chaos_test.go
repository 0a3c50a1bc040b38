package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// In the chaos test, two nodes save, peek and dequeue for one recipient at the same time. Their connection
// loses and delays requests and replies, plain reads may be stale, and nodes die and are replaced. At the
// end, no event may be lost, doubled or out of order. Every second run, which the test calls a world,
// orders events by recipient instead of by cabinet. The test runs with the fake clock of synctest, so that
// leases and backoffs take no real time.

// chaosSeeds is the number of worlds: one for every combination of retention, order, tails and stale
// reads. MESSAGEHUB_CHAOS_SEEDS sets another number, as make campaign does with 1,000, and
// MESSAGEHUB_CHAOS_SEED selects one world.
const chaosSeeds = 24

// chaosRetention is the retention in the worlds with a sweep. It is longer than the time from the first
// attempt to save events until their last Save ends. A domain resends its events for resendFor, and then
// waits for up to saveTimeout. A caller that leads a batch may still save these events in its current
// round or in the next one, even if the domain no longer waits.
const (
	chaosRetention = resendFor + saveTimeout + 2*saveTimeout + 10*time.Second
	resendFor      = saveTimeout / 2
)

func TestChaos_LosesDuplicatesAndReordersNothing(t *testing.T) {
	t.Parallel()
	first, last := uint64(0), uint64(chaosSeeds)
	if raced {
		first, last = 1, 3
	}
	if s, err := strconv.ParseUint(os.Getenv("MESSAGEHUB_CHAOS_SEEDS"), 10, 64); err == nil {
		last = s
	}
	if s, err := strconv.ParseUint(os.Getenv("MESSAGEHUB_CHAOS_SEED"), 10, 64); err == nil {
		first, last = s, s+1
	}
	var swept float64 // number of drawers that were removed in all worlds
	delivered := 0    // number of notices delivered in all worlds
	for seed := first; seed < last; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChaos(t, seed)
				c.run()
				swept += c.countSwept(t)
				delivered += len(c.delivered)
			})
		})
	}
	if last-first >= chaosSeeds && !raced {
		require.Greater(t, swept, 60.0, "sweeps remove drawers in these worlds")
		require.Greater(t, delivered, 60, "the relays deliver notices in these worlds")
	}
}

type chaos struct {
	*testing.T
	*rig
	seed   uint64
	sweeps bool // acknowledged events are removed soon, so savers do not repeat events that were reported as stored
	order  domain.Ordering
	random func(n int) int
	calm   atomic.Bool // faults and stale reads have ended
	actor  domain.ActorID
	ledger repositorytest.Ledger

	mu        sync.Mutex
	nodes     [2]*chaosNode
	seen      map[domain.BundleID]repositorytest.PeekedBundle
	closed    map[domain.BundleID]bool   // bundles whose Dequeue was reported as successful
	answers   map[domain.BundleID]string // objects
	delivered []domain.Notice            // the notices that relays delivered, in order
}

type chaosNode struct {
	*Repository
	line *chaosLine
	stop func()
}

// A chaosLine is the connection of one node. All requests fail once the node is dead.
type chaosLine struct {
	c    *chaos
	next faulty.Doer
	dead atomic.Bool
}

func (l *chaosLine) Do(req *http.Request) (*http.Response, error) {
	if !l.delay(req) || l.dead.Load() {
		return nil, faulty.ErrLost
	}
	resp, err := l.next.Do(req)
	if err == nil && (!l.delay(req) || l.dead.Load()) {
		_ = resp.Body.Close()
		return nil, faulty.ErrLost
	}
	return resp, err
}

// delay waits for a few milliseconds, and sometimes for so long that other nodes treat this node as dead.
func (l *chaosLine) delay(req *http.Request) bool {
	if !faulty.IsForDocuments(req) {
		return true
	}
	d := time.Duration(1+l.c.random(1500)) * time.Microsecond
	if !l.c.calm.Load() && l.c.random(150) == 0 {
		d = time.Duration(2000+l.c.random(4000)) * time.Millisecond
	}
	return client.Sleep(req.Context(), d)
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{
		T: t, seed: seed, sweeps: seed%3 == 0, order: domain.ByCabinet, actor: repositorytest.NewActor(),
		seen: make(map[domain.BundleID]repositorytest.PeekedBundle), closed: make(map[domain.BundleID]bool), answers: make(map[domain.BundleID]string),
	}
	if seed%2 == 1 {
		c.order = domain.ByRecipient
	}
	source := seeded(seed)
	c.random = func(n int) int { return int(source() % uint64(n)) }
	opts := embedded.Options{}
	if seed%4 != 0 {
		opts.Consistency = "Session"
		opts.Stale = func() int {
			if c.calm.Load() || c.random(3) > 0 {
				return 0
			}
			return 1 + c.random(6)
		}
	}
	c.rig = newRig(t, opts)
	c.line.Break(func(int, *http.Request) faulty.Fault {
		if c.calm.Load() || c.random(100) >= 6 {
			return faulty.None
		}
		faults := faulty.CommonFaults()
		return faults[c.random(len(faults)-1)] // omits the last fault, a foreign 412, because this test causes real ones
	})
	for i := range c.nodes {
		c.nodes[i] = c.startNode()
	}
	return c
}

// countSwept returns the number of drawers that were removed by the nodes alive at the end.
func (c *chaos) countSwept(t *testing.T) float64 {
	var sum float64
	for _, n := range c.nodes {
		sum += counterValue(t, n.metrics.swept.WithLabelValues("drawer"))
	}
	return sum
}

func (c *chaos) startNode() *chaosNode {
	line := &chaosLine{c: c, next: c.line}
	db, err := client.Connect(client.Connection{Endpoint: c.engine.Endpoint(), Key: c.engine.Key(), Transport: line})
	require.NoError(c, err)
	n := &chaosNode{line: line}
	opts := Options{DrawerCapacity: 3, TailEvents: []int{0, 1, 2, 24}[c.seed/2%4], Ordering: c.order, Random: seeded(c.seed ^ uint64(c.random(1<<30))), SweepEvery: -1}
	if c.sweeps {
		opts.Retention, opts.SweepEvery = chaosRetention, time.Second
	}
	n.Repository = New(db, c.content, opts)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	if c.random(3) > 0 {
		running.Go(func() { _ = n.Run(ctx) })
	}
	n.stop = func() { cancel(); running.Wait(); db.Close() }
	return n
}

func (c *chaos) node(i int) *chaosNode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i]
}

// savers is the number of callers that save at the same time.
const savers = 3

func (c *chaos) run() {
	var actors, writers, killer sync.WaitGroup
	var dead []*chaosNode
	done := make(chan struct{})
	for i := range savers {
		writers.Go(func() { c.saveBatches(i) })
	}
	for i := range 2 {
		actors.Go(func() { c.peekAndDequeue(i, done) })
		actors.Go(func() { c.relayNotices(i, done) })
	}
	killer.Go(func() {
		for range c.random(4) {
			c.pause(c.killEvery())
			i, next := c.random(2), c.startNode()
			c.mu.Lock()
			c.nodes[i].line.dead.Store(true)
			dead = append(dead, c.nodes[i])
			c.nodes[i] = next
			c.mu.Unlock()
		}
	})
	writers.Wait()
	killer.Wait()
	close(done)
	actors.Wait()
	c.calm.Store(true)
	defer func() {
		for _, n := range append(dead, c.nodes[0], c.nodes[1]) {
			n.stop()
		}
	}()

	var left []repositorytest.PeekedBundle
	for {
		b, err := c.peek(c.nodes[0])
		if errors.Is(err, domain.ErrNoData) {
			break
		}
		if domain.KindOf(err) == domain.Conflict {
			continue // a delayed request has changed the gate
		}
		require.NoError(c, err)
		if b.IsUnanswered() {
			require.NoError(c, c.answerBundle(c.nodes[0], b.ID, "made-at-last"))
		}
		closed, err := c.nodes[0].Acknowledge(context.Background(), c.actor, b.ID)
		require.NoError(c, err)
		require.Equal(c, b.Behind.Events, closed.Remaining.Events)
		left = append(left, b)
	}
	c.requireBacklogs(left)
	require.NoError(c, c.deliverNotices(c.nodes[0]))
	c.requireNoticesInOrder()
	require.NoError(c, c.repairMailbox(c.actor))
	bundles := make([]repositorytest.PeekedBundle, 0, len(c.seen))
	for _, b := range c.seen {
		bundles = append(bundles, b)
	}
	slices.SortFunc(bundles, func(a, b repositorytest.PeekedBundle) int { return cmp.Compare(a.First, b.First) })
	require.NoError(c, c.ledger.Check(bundles), "%s", describeDoubles(bundles))
	last := make(map[domain.Group]domain.Sequence)
	for _, b := range bundles {
		if c.order == domain.ByRecipient {
			require.Greater(c, b.First, last[b.Group], "bundle %s overtakes", b.ID)
		}
		last[b.Group] = b.Last
	}
}

// describeDoubles finds the events that are in two bundles, and returns the times at which they were
// saved. If the times are more than chaosRetention apart, the first copy may have been removed before the
// second Save.
func describeDoubles(bundles []repositorytest.PeekedBundle) string {
	var text strings.Builder
	saved := make(map[domain.EventID]time.Time)
	for _, b := range bundles {
		for _, e := range b.Events {
			if first, ok := saved[e.ID]; ok {
				fmt.Fprintf(&text, "event %s was saved at %v, and %v later in bundle %s\n", e.ID, first, e.Saved.Sub(first), b.ID)
			}
			saved[e.ID] = e.Saved
		}
	}
	return text.String()
}

// requireBacklogs requires that each bundle in left, in order, reported the right backlog.
func (c *chaos) requireBacklogs(left []repositorytest.PeekedBundle) {
	events, oldest := int64(0), time.Now()
	for _, b := range slices.Backward(left) {
		require.Equal(c, events, b.Behind.Events, "events behind bundle %s", b.ID)
		if events > 0 {
			require.False(c, b.Behind.Oldest.IsZero())
			require.False(c, b.Behind.Oldest.After(oldest), "an event waits since %v, not %v", oldest, b.Behind.Oldest)
		}
		for _, e := range b.Events {
			events++
			if e.Saved.Before(oldest) {
				oldest = e.Saved
			}
		}
	}
}

// pause lets up to ms milliseconds of the bubble's time pass.
func (c *chaos) pause(ms int) {
	client.Sleep(context.Background(), time.Duration(c.random(ms*1000))*time.Microsecond)
}

// saveBatches saves batches of events, and repeats each batch until the Save succeeds. In worlds with a
// sweep, it repeats a batch only for resendFor. If the batch was not stored by then, the next batch may be
// stored before it, so saveBatches records the next batch under another saver.
func (c *chaos) saveBatches(saver int) {
	var earlier []domain.Event
	for range c.countBatches() {
		batch := repositorytest.Events(1+c.random(5), c.actor)
		for i := range batch {
			repositorytest.WithOrigin([]domain.Origin{domain.TimeSeries, domain.Charges, domain.MarketRoles}[c.random(3)])(&batch[i])
			batch[i].SupportsBundling = c.random(4) > 0
		}
		if len(earlier) > 0 && !c.sweeps && c.random(3) == 0 { // a domain repeats an event if it does not know whether the event was stored
			batch = append(batch, earlier[c.random(len(earlier))])
		}
		c.ledger.Unsure(saver, batch...)
		isStored, began := false, time.Now()
		for try := 0; !c.sweeps || time.Since(began) < resendFor; try++ {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+c.random(20_000))*time.Millisecond)
			saved, err := c.node(c.random(2)).Save(ctx, c.actor, batch)
			cancel()
			if err == nil {
				require.Equal(c, len(batch), saved.Accepted+saved.Duplicates)
				c.ledger.Saved(saver, batch...)
				isStored = true
				break
			}
			require.Less(c, try, 200, "never saved: %v", err)
			c.requireExpected(err)
		}
		if !isStored {
			saver += savers
		}
		earlier = append(earlier, batch...)
		if c.sweeps {
			c.pause(20_000)
		} else {
			c.pause(50)
		}
	}
}

// killEvery returns the approximate time between the start and the death of a node, in milliseconds.
func (c *chaos) killEvery() int {
	if c.sweeps {
		return 60_000
	}
	return 400
}

// countBatches returns the number of batches for a saver. Worlds with a sweep have more batches, with
// longer pauses.
func (c *chaos) countBatches() int {
	if c.sweeps {
		return 12 + c.random(12)
	}
	return 2 + c.random(5)
}

func (c *chaos) requireExpected(err error) {
	switch domain.KindOf(err) {
	case domain.Busy, domain.Uncertain, domain.Unavailable, domain.Conflict:
	default:
		require.NoError(c, err, "kind %s", domain.KindOf(err))
	}
}

// peek calls Peek and checks the result.
func (c *chaos) peek(n *chaosNode) (repositorytest.PeekedBundle, error) {
	c.mu.Lock()
	closedBefore := make(map[domain.BundleID]bool, len(c.closed))
	for id := range c.closed {
		closedBefore[id] = true
	}
	answeredBefore := maps.Clone(c.answers)
	c.mu.Unlock()
	b, err := repositorytest.Peek(context.Background(), c.stores(n.Repository), c.actor, allGroups, domain.BundleID{}, func(b *domain.Bundle) {
		if c.random(2) == 0 {
			repositorytest.OnRequest(b)
		}
	})
	if err != nil {
		return b, err
	}
	require.False(c, closedBefore[b.ID], "H6: bundle %s was peeked after its Dequeue had been answered", b.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.seen[b.ID]; ok {
		require.Equal(c, first.Events, b.Events, "H6: a Peek repeats the events")
		require.Equal(c, withoutAnswer(first.Bundle), withoutAnswer(b.Bundle), "H6: a Peek repeats the bundle")
	}
	if object, ok := answeredBefore[b.ID]; ok {
		require.Equal(c, object, b.Object, "an answer that was noted is not forgotten")
	}
	c.seen[b.ID] = b
	return b, nil
}

// withoutAnswer returns b without the results of content requests.
func withoutAnswer(b domain.Bundle) domain.Bundle {
	if b.Content == domain.Request {
		b.Object, b.Body, b.ContentFailure = "", domain.Body{}, domain.ContentFailure{}
	}
	return b
}

// answerBundle answers a bundle, and requires that every answer returns the object of the first answer.
func (c *chaos) answerBundle(n *chaosNode, id domain.BundleID, object string) error {
	b, err := n.Answer(context.Background(), c.actor, id, object, domain.Body{Length: int64(len(object))})
	if err != nil {
		return err
	}
	require.Zero(c, b.ContentFailure)
	require.EqualValues(c, len(b.Object), b.Body.Length)
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.answers[id]; ok {
		require.Equal(c, first, b.Object, "the first answer stays")
	}
	c.answers[id] = b.Object
	return nil
}

// deliverNotices delivers the notices in the outbox, in order. It stops when it does not know whether a
// notice was removed.
func (c *chaos) deliverNotices(n *chaosNode) error {
	notices, err := n.Notices(context.Background(), c.actor)
	for _, notice := range notices {
		c.mu.Lock()
		c.delivered = append(c.delivered, notice)
		c.mu.Unlock()
		if err = n.Delivered(context.Background(), notice); err != nil {
			break
		}
	}
	return err
}

// relayNotices delivers notices until done is closed.
func (c *chaos) relayNotices(i int, done <-chan struct{}) {
	own := rand.New(rand.NewPCG(c.seed, uint64(10+i)))
	for {
		select {
		case <-done:
			return
		default:
		}
		c.pause(300)
		n := c.node(own.IntN(2))
		waiting, err := n.Waiting(context.Background(), time.Now(), 3)
		if err == nil && len(waiting) > 0 {
			require.Equal(c, c.actor, waiting[0])
			err = c.deliverNotices(n)
		}
		if err != nil {
			c.requireExpected(err)
		} else if c.sweeps {
			c.pause(3000)
		}
	}
}

// requireNoticesInOrder requires a notice for every bundle in content mode request. In each group, the
// notices must first have been delivered in the order of the bundles.
func (c *chaos) requireNoticesInOrder() {
	isNotified := make(map[domain.BundleID]bool)
	last := make(map[domain.Group]domain.Notice)
	for _, n := range c.delivered {
		if isNotified[n.Bundle] {
			continue
		}
		isNotified[n.Bundle] = true
		before, ok := last[n.Group]
		last[n.Group] = n
		require.Equal(c, c.seen[n.Bundle].List, n.List)
		if ok {
			require.Greater(c, n.Number, before.Number)
			require.False(c, c.seen[n.Bundle].Opened.Before(c.seen[before.Bundle].Opened), "notices of %s", n.Group)
		}
	}
	for id, b := range c.seen {
		require.Equal(c, b.Content == domain.Request, isNotified[id], "whether a notice of bundle %s was delivered", id)
	}
}

// peekAndDequeue peeks and dequeues until done is closed.
func (c *chaos) peekAndDequeue(i int, done <-chan struct{}) {
	own := rand.New(rand.NewPCG(c.seed, uint64(i)))
	for {
		select {
		case <-done:
			return
		default:
		}
		c.pause(30)
		b, err := c.peek(c.node(own.IntN(2)))
		if errors.Is(err, domain.ErrNoData) {
			if c.sweeps {
				c.pause(3000)
			}
			continue
		}
		if err != nil {
			c.requireExpected(err)
			continue
		}
		for b.IsUnanswered() && own.IntN(5) > 0 { // answers may arrive late, and more than once
			n := c.node(own.IntN(2))
			if own.IntN(3) == 0 {
				_, err = n.Fail(context.Background(), c.actor, b.ID, domain.ContentFailure{Reason: "busy"})
			} else {
				err = c.answerBundle(n, b.ID, fmt.Sprintf("made-by-%d-%d", i, own.IntN(1000)))
			}
			if domain.KindOf(err) == domain.NotFound { // the other goroutine has closed the bundle
				break
			}
			if err != nil {
				c.requireExpected(err)
			}
		}
		for own.IntN(5) > 0 {
			c.mu.Lock()
			_, isAnswered := c.answers[b.ID]
			c.mu.Unlock()
			_, err := c.node(own.IntN(2)).Acknowledge(context.Background(), c.actor, b.ID)
			if errors.Is(err, repository.ErrUnanswered) {
				require.False(c, isAnswered, "bundle %s has its answer", b.ID)
				break
			}
			if err == nil || domain.KindOf(err) == domain.NotFound {
				c.mu.Lock()
				c.closed[b.ID] = true
				c.mu.Unlock()
				break
			}
			c.requireExpected(err)
		}
	}
}

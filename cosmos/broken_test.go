package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The breakage test breaks each request of an operation once with every fault, and repeats the operation
// as a caller would. Then the test checks all stored and delivered data.

// A brokenOperation is an operation on a node that is repeated until it succeeds.
type brokenOperation struct {
	name      string
	prepare   func(s *breakage) // runs before the operation, with an unbroken connection
	act       func(s *breakage, node *Repository) error
	check     func(s *breakage) // checks the result, with an unbroken connection
	rollbacks bool              // the operation rolls back an unfinished Save
}

type breakage struct {
	*testing.T
	*rig
	actor    domain.ActorID
	ledger   repositorytest.Ledger
	dequeued []repositorytest.PeekedBundle
	opts     Options

	batch        []domain.Event
	open         repositorytest.PeekedBundle
	tries        int // number of attempts of the operation
	notified     []domain.Notice
	subscription domain.SubscriptionID
}

// requestDequeues makes Dequeues of the recipient write notices for a subscription.
func (s *breakage) requestDequeues(node *Repository) error {
	_, err := node.RequestDequeues(context.Background(), s.actor, s.subscription)
	return err
}

// openOnRequest opens a bundle that waits for content from its domain.
func (s *breakage) openOnRequest() {
	node := s.node(s.opts, false)
	s.requireNoError(s.save(node, s.makeEvents(2)))
	var err error
	s.open, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{}, repositorytest.OnRequest)
	s.requireNoError(err)
}

// openAnswered opens a bundle and stores the answer of its domain.
func (s *breakage) openAnswered() {
	s.openOnRequest()
	_, err := s.node(s.opts, false).Answer(context.Background(), s.actor, s.open.ID, "made", domain.Body{})
	s.requireNoError(err)
}

// openWatched opens a bundle and adds a watch.
func (s *breakage) openWatched() repositorytest.PeekedBundle {
	node := s.node(s.opts, false)
	s.requireNoError(s.save(node, s.batch))
	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
	s.requireNoError(err)
	_, err = node.WatchBundle(context.Background(), s.actor, b.ID)
	s.requireNoError(err)
	return b
}

// openGone opens a bundle, stores an answer and marks the content as gone.
func (s *breakage) openGone() {
	s.openAnswered()
	_, err := s.node(s.opts, false).MarkGone(context.Background(), s.actor, s.open.ID, "made")
	s.requireNoError(err)
}

// readOpenBundle returns the open bundle as it is stored.
func (s *breakage) readOpenBundle() domain.Bundle {
	b, _, err := s.node(s.opts, false).Find(context.Background(), s.actor, s.open.ID)
	s.requireNoError(err)
	return b
}

// dequeueOpen closes the open bundle.
func (s *breakage) dequeueOpen(node *Repository) error {
	_, err := node.Acknowledge(context.Background(), s.actor, s.open.ID)
	if err == nil || domain.KindOf(err) == domain.NotFound { // an earlier attempt has closed the bundle
		s.dequeued = append(s.dequeued, s.open)
		return nil
	}
	return err
}

// save saves events, and records the request and its result in the ledger.
func (s *breakage) save(node *Repository, events []domain.Event) error {
	s.ledger.Unsure(0, events...)
	saved, err := node.Save(context.Background(), s.actor, events)
	if err == nil {
		assert.Equal(s, len(events), saved.Accepted+saved.Duplicates)
		s.ledger.Saved(0, events...)
	}
	return err
}

func (s *breakage) requireNoError(err error) { s.Helper(); require.NoError(s, err) }

// makeEvents returns n events in two cabinets of two origins, one in three with a payload.
func (s *breakage) makeEvents(n int) []domain.Event {
	events := repositorytest.Events(n, s.actor, repositorytest.WithOrigin(domain.TimeSeries))
	for i := range events {
		if i%2 == 1 {
			repositorytest.WithOrigin(domain.Charges)(&events[i])
		}
		if i%3 == 0 {
			repositorytest.WithPayload(fmt.Sprintf(`{"n":%d}`, i))(&events[i])
		}
	}
	return events
}

var brokenOperations = []brokenOperation{
	{
		name: "first save of a recipient",
		act:  func(s *breakage, node *Repository) error { return s.save(node, s.batch) },
	},
	{
		name: "save into drawers that are half full, over their brim",
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.save(node, s.makeEvents(2)))
		},
		act: func(s *breakage, node *Repository) error { return s.save(node, s.batch) },
	},
	{
		name:      "save behind an intent that somebody has left",
		rollbacks: true,
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.save(node, s.makeEvents(3)))
			dying := s.node(Options{DrawerCapacity: s.opts.DrawerCapacity, Retries: -1}, false)
			s.line.Break(func(call int, _ *http.Request) faulty.Fault {
				if call > 3 {
					return faulty.RequestLost
				}
				return faulty.None
			})
			require.Error(s, s.save(dying, s.makeEvents(4)))
			s.line.Break(nil)
		},
		act: func(s *breakage, node *Repository) error { return s.save(node, s.batch) },
	},
	{
		name: "peek that opens a bundle",
		prepare: func(s *breakage) {
			s.requireNoError(s.save(s.node(s.opts, false), s.batch))
		},
		act: func(s *breakage, node *Repository) (err error) {
			s.open, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			return err
		},
	},
	{
		name: "peek whose pointers are all wrong",
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)                   // this node writes no hints
			s.requireNoError(s.save(node, s.makeEvents(6))) // these events fill several drawers in each cabinet
			b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			s.requireNoError(err)
			_, err = node.Acknowledge(context.Background(), s.actor, b.ID)
			s.requireNoError(err)
			s.dequeued = append(s.dequeued, b)
		},
		act: func(s *breakage, node *Repository) (err error) {
			s.open, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			return err
		},
	},
	{
		name: "remove what was acknowledged",
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.save(node, s.batch))
			for range 2 { // two of three bundles are dequeued
				b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
				s.requireNoError(err)
				_, err = node.Acknowledge(context.Background(), s.actor, b.ID)
				s.requireNoError(err)
				s.dequeued = append(s.dequeued, b)
			}
			s.requireNoError(s.save(node, s.makeEvents(2)))
		},
		act: func(s *breakage, node *Repository) error {
			node.opts.Retention = 1
			_, err := node.Sweep(context.Background())
			return err
		},
	},
	{
		name: "dequeue",
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.save(node, s.batch))
			var err error
			s.open, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			s.requireNoError(err)
		},
		act: (*breakage).dequeueOpen,
	},
	{
		name:    "answer",
		prepare: (*breakage).openOnRequest,
		act: func(s *breakage, node *Repository) error {
			b, err := node.Answer(context.Background(), s.actor, s.open.ID, "made", domain.Body{Length: 4})
			if err == nil {
				assert.Equal(s, "made", b.Object)
			}
			return err
		},
		check: func(s *breakage) {
			b := s.readOpenBundle()
			assert.Equal(s, "made", b.Object)
			assert.Equal(s, domain.Body{Length: 4}, b.Body)
		},
	},
	{
		name:    "answer that is not the first",
		prepare: (*breakage).openAnswered,
		act: func(s *breakage, node *Repository) error {
			b, err := node.Answer(context.Background(), s.actor, s.open.ID, "made-late", domain.Body{Length: 9})
			if err == nil {
				assert.Equal(s, "made", b.Object)
			}
			return err
		},
		check: func(s *breakage) { assert.Equal(s, "made", s.readOpenBundle().Object) },
	},
	{
		name:    "mark of deleted content",
		prepare: (*breakage).openAnswered,
		act: func(s *breakage, node *Repository) error {
			b, err := node.MarkGone(context.Background(), s.actor, s.open.ID, "made")
			if err == nil {
				assert.True(s, b.Gone)
			}
			return err
		},
		check: func(s *breakage) { assert.True(s, s.readOpenBundle().Gone) },
	},
	{
		name:    "deleted content that is reported by its name",
		prepare: (*breakage).openAnswered,
		act: func(s *breakage, node *Repository) error {
			recipients, err := node.BundleRecipients(context.Background(), s.open.ID)
			if err != nil {
				return err
			}
			require.Equal(s, []domain.ActorID{s.actor}, recipients)
			_, err = node.MarkGone(context.Background(), s.actor, s.open.ID, "made")
			return err
		},
		check: func(s *breakage) { assert.True(s, s.readOpenBundle().Gone) },
	},
	{
		name:    "answer in place of deleted content",
		prepare: (*breakage).openGone,
		act: func(s *breakage, node *Repository) error {
			b, err := node.ReplaceAnswer(context.Background(), s.actor, s.open.ID, "made", "made-again", domain.Body{Length: 4})
			if err == nil {
				assert.Equal(s, "made-again", b.Object)
			}
			return err
		},
		check: func(s *breakage) {
			b := s.readOpenBundle()
			assert.Equal(s, "made-again", b.Object)
			assert.False(s, b.Gone)
			assert.Equal(s, domain.Body{Length: 4}, b.Body)
		},
	},
	{
		name:    "dequeue of a bundle whose content was deleted",
		prepare: (*breakage).openGone,
		act:     (*breakage).dequeueOpen,
	},
	{
		name:    "failure of a domain",
		prepare: (*breakage).openOnRequest,
		act: func(s *breakage, node *Repository) error {
			_, err := node.Fail(context.Background(), s.actor, s.open.ID, domain.ContentFailure{Reason: "busy"})
			return err
		},
		check: func(s *breakage) {
			failures := s.readOpenBundle().ContentFailure.Failures
			assert.Positive(s, failures)
			assert.LessOrEqual(s, failures, s.tries, "each call counts once")
		},
	},
	{
		name:    "dequeue of a bundle on request",
		prepare: (*breakage).openAnswered,
		act:     (*breakage).dequeueOpen,
		check: func(s *breakage) {
			notices, err := s.node(s.opts, false).Notices(context.Background(), s.actor)
			s.requireNoError(err)
			require.Len(s, notices, 1)
			assert.Equal(s, s.open.ID, notices[0].Bundle)
		},
	},
	{
		name: "dequeue that is told to subscribers",
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.save(node, s.batch))
			var err error
			s.open, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			s.requireNoError(err)
			s.requireNoError(s.requestDequeues(node))
		},
		act: (*breakage).dequeueOpen,
		check: func(s *breakage) {
			notices, err := s.node(s.opts, false).Notices(context.Background(), s.actor)
			s.requireNoError(err)
			require.Equal(s, []domain.BundleID{s.open.ID}, bundlesOf(notices))
		},
	},
	{
		name: "removal of a bundle that was watched",
		prepare: func(s *breakage) {
			s.open = s.openWatched()
			s.requireNoError(s.dequeueOpen(s.node(s.opts, false)))
		},
		act: func(s *breakage, node *Repository) error {
			node.opts.Clock = func() time.Time { return time.Now().Add(8 * day) }
			_, err := node.SweepRecipient(context.Background(), s.actor)
			if err == nil {
				_, err = node.SweepRecipient(context.Background(), s.actor) // this sweep repeats the writes that were refused
			}
			return err
		},
		check: func(s *breakage) {
			notices, err := s.node(s.opts, false).Notices(context.Background(), s.actor)
			s.requireNoError(err)
			require.Equal(s, []domain.Audience{domain.ForWatchers, domain.ForWatchersOfRemoval}, audiencesOf(notices))
			require.Equal(s, []domain.BundleID{s.open.ID, s.open.ID}, bundlesOf(notices))
			require.EqualValues(s, 2, notices[1].Version)
		},
	},
	{
		name: "request of dequeues",
		prepare: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.save(node, s.batch))
			var err error
			s.open, err = repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			s.requireNoError(err)
		},
		act: (*breakage).requestDequeues,
		check: func(s *breakage) {
			node := s.node(s.opts, false)
			s.requireNoError(s.dequeueOpen(node))
			notices, err := node.Notices(context.Background(), s.actor)
			s.requireNoError(err)
			require.Equal(s, []domain.BundleID{s.open.ID}, bundlesOf(notices))
		},
	},
	{
		name: "withdrawal of a request of dequeues",
		prepare: func(s *breakage) {
			s.requireNoError(s.requestDequeues(s.node(s.opts, false)))
		},
		act: func(s *breakage, node *Repository) error {
			return node.WithdrawDequeues(context.Background(), s.actor, s.subscription)
		},
		check: func(s *breakage) {
			gates := make(map[domain.Group]*gate)
			s.requireNoError(s.node(s.opts, false).beginCall("test").readGates(context.Background(), s.actor, allGroups, gates))
			for _, g := range gates {
				assert.NotZero(s, g.ETag)
				assert.Empty(s, g.DequeueRequests)
			}
		},
	},
	{
		name: "take notices out of the outbox",
		prepare: func(s *breakage) {
			for range 2 {
				s.openAnswered()
				s.requireNoError(s.dequeueOpen(s.node(s.opts, false)))
			}
		},
		act: func(s *breakage, node *Repository) error {
			if waiting, err := node.Waiting(context.Background(), time.Now().Add(time.Hour), 10); err != nil || len(waiting) == 0 {
				return err
			}
			notices, err := repositorytest.DrainNotices(context.Background(), s.stores(node), s.actor)
			s.notified = append(s.notified, notices...)
			return err
		},
		check: func(s *breakage) {
			notified := make(map[domain.BundleID]bool)
			for _, n := range s.notified {
				notified[n.Bundle] = true
			}
			assert.Equal(s, map[domain.BundleID]bool{s.dequeued[0].ID: true, s.dequeued[1].ID: true}, notified)
			notices, err := s.node(s.opts, false).Notices(context.Background(), s.actor)
			s.requireNoError(err)
			assert.Empty(s, notices)
		},
	},
}

// A requestFault is a way to break a request. retries configures the node: -1 leaves retries to the
// caller, 0 means the default.
type requestFault struct {
	fault   faulty.Fault
	retries int
}

func (b requestFault) String() string {
	if b.retries == 0 {
		return b.fault.String() + "/retried by the operation"
	}
	return b.fault.String() + "/retried by the caller"
}

// requestFaults returns the ways to break a request. Package client returns the same kind of error for
// several faults, so each kind of error occurs twice: retried once by the node and once by the caller,
// with alternating faults. MESSAGEHUB_EVERY_CASE=1, as in make campaign, combines every fault with both
// retries. Under the race detector two faults suffice, because all faults execute the same lines.
func requestFaults() []requestFault {
	if raced {
		return []requestFault{{faulty.ForeignPrecondition, -1}, {faulty.ReplyLostAfter, 0}}
	}
	if triesEveryCase {
		var all []requestFault
		for _, fault := range faulty.CommonFaults() {
			all = append(all, requestFault{fault, -1}, requestFault{fault, 0})
		}
		return all
	}
	return []requestFault{
		{faulty.RequestLost, -1},
		{faulty.Unavailable, 0},
		{faulty.ReplyLostAfter, -1},
		{faulty.TimeoutAfter, 0},
		{faulty.UnavailableAfter, -1},
		{faulty.ReplyLostAfter, 0},
		{faulty.Throttled, -1},
		{faulty.RetryWith, 0},
		{faulty.ForeignPrecondition, -1},
		{faulty.ForeignPrecondition, 0},
	}
}

func TestEveryCallBrokenOnceInEveryWay(t *testing.T) {
	cases := sample{oneOf: 3}
	for _, op := range brokenOperations {
		for _, way := range requestFaults() {
			if !raced && !cases.isSelected() {
				continue
			}
			t.Run(op.name+"/"+way.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // in a bubble, backoffs take no real time
					n := 1
					for breakOnce(t, op, way.fault, n, way.retries) {
						n++
					}
					assert.Greater(t, n, 1, "no call was ever broken")
				})
			})
		}
	}
}

// breakOnce breaks request n of an operation, and reports whether the operation makes at least n requests.
func breakOnce(t *testing.T, op brokenOperation, fault faulty.Fault, n, retries int) bool {
	s := &breakage{T: t, rig: newRig(t, embedded.Options{}), actor: repositorytest.NewActor()}
	s.opts = Options{DrawerCapacity: 2, Exclusive: true}
	s.batch, s.subscription = s.makeEvents(5), repositorytest.NewSubscriptionID()
	if op.prepare != nil {
		op.prepare(s)
	}
	opts := s.opts
	opts.Retries = retries
	node := s.node(opts, false)
	s.line.BreakOne(n, fault)
	var err error
	for s.tries < 4 {
		s.tries++
		err = op.act(s, node)
		if err == nil {
			break
		}
		kind := domain.KindOf(err)
		require.Contains(t, []domain.Kind{domain.Busy, domain.Uncertain, domain.Unavailable, domain.Conflict}, kind, "call %d: %v", n, err)
	}
	require.NoError(t, err, "call %d, tried again", n)
	if absorbs := retries == 0 && fault != faulty.ForeignPrecondition; absorbs {
		assert.Equal(t, 1, s.tries, "call %d: an operation gets over a single fault by itself", n)
		assert.True(t, op.rollbacks || counterValue(t, node.metrics.repairs.WithLabelValues("rollback")) == 0,
			"call %d: an operation knows its own writes, and does not undo them", n)
	}
	happened := s.line.Calls() >= n
	s.line.Break(nil)
	if op.check != nil {
		op.check(s)
	}

	require.NoError(t, s.auditMailbox(s.actor), "call %d", n)
	drained, err := repositorytest.Drain(context.Background(), s.stores(s.node(s.opts, false)), s.actor, allGroups)
	require.NoError(t, err, "call %d", n)
	require.NoError(t, s.ledger.Check(append(s.dequeued, drained...)), "call %d", n)
	require.NoError(t, s.repairMailbox(s.actor), "call %d", n)
	_, err = node.NextUnacknowledged(context.Background(), s.actor, allGroups)
	require.True(t, errors.Is(err, domain.ErrNoData), "call %d: %v", n, err)

	sweeper := s.node(Options{DrawerCapacity: s.opts.DrawerCapacity, Exclusive: true, Retention: 1}, false)
	_, err = sweeper.Sweep(context.Background())
	require.NoError(t, err, "call %d", n)
	left, err := client.All[drawer](context.Background(), sweeper.beginCall("test").QueryAllPartitions(sweeper.db.cabinets, "", "SELECT * FROM c"))
	require.NoError(t, err, "call %d", n)
	require.Empty(t, left, "call %d: all is acknowledged, so all goes", n)
	return happened
}

func counterValue(t *testing.T, c prometheus.Counter) float64 {
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.GetCounter().GetValue()
}

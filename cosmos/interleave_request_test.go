package cosmos

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// These tests run calls concurrently on one bundle in content mode request: Answer, Fail, Acknowledge, the
// Release or Skip of an operator, and a relay. The requests of the calls to the store are interleaved in
// every order.

// A requestedBundle is the bundle on which the calls of a world run, with the results of the calls.
type requestedBundle struct {
	repositorytest.PeekedBundle
	objects  []string // name of the object in each result of Answer
	refused  int      // number of calls of Answer and Fail after the bundle was closed
	dequeued int
	ordered  bool // an operator closed the bundle
	notices  []domain.Notice
}

// withOpenRequest saves two events and opens a bundle of the first one. The bundle has an answer if
// isAnswered is true; otherwise it waits for its domain.
func withOpenRequest(isAnswered bool) func(w *world) {
	return func(w *world) {
		node := w.node(Options{DrawerCapacity: 2, Random: seeded(99)}, false)
		require.NoError(w, w.saveEvents(node, repositorytest.Events(2, w.actor, repositorytest.WithoutBundling)...))
		var err error
		w.requested.PeekedBundle, err = repositorytest.Peek(w.Context(), w.stores(node), w.actor, allGroups, domain.BundleID{}, repositorytest.OnRequest)
		require.NoError(w, err)
		if isAnswered {
			require.NoError(w, answers("made-before").does(w, node))
		}
	}
}

// withDequeuedBundle dequeues a bundle, so that its notice is in the outbox. Then it opens and answers the
// next bundle.
func withDequeuedBundle(w *world) {
	withOpenRequest(true)(w)
	node := w.node(Options{DrawerCapacity: 2, Random: seeded(98)}, false)
	require.NoError(w, dequeues.does(w, node))
	w.requested = requestedBundle{notices: w.requested.notices}
	var err error
	w.requested.PeekedBundle, err = repositorytest.Peek(w.Context(), w.stores(node), w.actor, allGroups, domain.BundleID{}, repositorytest.OnRequest)
	require.NoError(w, err)
	require.NoError(w, answers("made-before").does(w, node))
}

func answers(object string) party {
	return party{name: "answer " + object, does: func(w *world, node *Repository) error {
		b, err := node.Answer(context.Background(), w.actor, w.requested.ID, object, domain.Body{Length: int64(len(object))})
		w.mu.Lock()
		defer w.mu.Unlock()
		if domain.KindOf(err) == domain.NotFound {
			w.requested.refused++
			return nil
		}
		w.requested.objects = append(w.requested.objects, b.Object)
		return err
	}}
}

var (
	fails = party{name: "fail", does: func(w *world, node *Repository) error {
		_, err := node.Fail(context.Background(), w.actor, w.requested.ID, domain.ContentFailure{Reason: "busy"})
		w.mu.Lock()
		defer w.mu.Unlock()
		if domain.KindOf(err) == domain.NotFound {
			w.requested.refused++
			return nil
		}
		return err
	}}
	dequeues = party{name: "dequeue", does: func(w *world, node *Repository) error {
		_, err := node.Acknowledge(context.Background(), w.actor, w.requested.ID)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.requested.dequeued++
			w.dequeued = append(w.dequeued, w.requested.PeekedBundle)
		}
		if errors.Is(err, repository.ErrUnanswered) || domain.KindOf(err) == domain.NotFound {
			return nil
		}
		return err
	}}
	releases = party{name: "release", does: func(w *world, node *Repository) error {
		return w.noteOrder(node.Release(context.Background(), w.actor, w.requested.ID, becauseOfATest))
	}}
	skips = party{name: "skip and replay", does: func(w *world, node *Repository) error {
		if err := node.Skip(context.Background(), w.actor, w.requested.ID, becauseOfATest); err != nil {
			return w.noteOrder(err)
		}
		_, err := node.Replay(context.Background(), w.actor, w.requested.Group, becauseOfATest)
		return err
	}}
	relays = party{name: "relay", does: func(w *world, node *Repository) error {
		notices, err := repositorytest.DrainNotices(context.Background(), w.stores(node), w.actor)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requested.notices = append(w.requested.notices, notices...)
		return err
	}}
)

func (w *world) noteOrder(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if domain.KindOf(err) == domain.NotFound { // the bundle was dequeued
		return nil
	}
	w.requested.ordered = w.requested.ordered || err == nil
	return err
}

// checkAnswers compares the results of the calls with the store.
func (a *requestedBundle) checkAnswers(w *world, node *Repository) {
	if a.ID == (domain.BundleID{}) {
		return
	}
	for _, object := range a.objects {
		require.Equal(w, a.objects[0], object, "every caller has the first answer")
	}
	require.LessOrEqual(w, a.dequeued, 1)
	b, _, err := node.Find(context.Background(), w.actor, a.ID)
	isOpen := err == nil
	require.Equal(w, a.dequeued == 0 && !a.ordered, isOpen, "whether it is open: %v", err)
	if isOpen && len(a.objects) > 0 {
		require.Equal(w, a.objects[0], b.Object)
		require.Zero(w, b.ContentFailure)
	}
	if a.refused > 0 && isOpen {
		require.Contains(w, partiesOf(w), skips.name, "no call came too late")
	}
	require.False(w, a.dequeued > 0 && len(a.objects) == 0, "a dequeued bundle has an answer")

	left, err := repositorytest.DrainNotices(context.Background(), w.stores(node), w.actor)
	require.NoError(w, err)
	notified := make(map[domain.BundleID]bool)
	last := int64(0)
	for _, n := range append(a.notices, left...) {
		if !notified[n.Bundle] {
			require.Greater(w, n.Number, last)
			last = n.Number
		}
		notified[n.Bundle] = true
	}
	require.Equal(w, a.dequeued > 0, notified[a.ID], "a notice exists if the bundle was dequeued")
	require.Len(w, notified, len(w.dequeued), "one notice for each dequeued bundle")
}

func partiesOf(w *world) (names []string) {
	for _, p := range w.parties {
		names = append(names, p.name)
	}
	return names
}

func TestABundleOnRequest_IsRightInEveryOrderOfRequests(t *testing.T) {
	for _, tc := range []struct {
		name    string
		turns   int
		prepare func(w *world)
		parties []party
	}{
		{"answer and dequeue", 2, withOpenRequest(false), []party{answers("made"), dequeues}},
		{"another answer and dequeue", 2, withOpenRequest(true), []party{answers("made-late"), dequeues}},
		{"two answers", 2, withOpenRequest(false), []party{answers("made-a"), answers("made-b")}},
		{"two answers and dequeue", 1, withOpenRequest(false), []party{answers("made-a"), answers("made-b"), dequeues}},
		{"failure and dequeue", 2, withOpenRequest(true), []party{fails, dequeues}},
		{"failure and answer", 2, withOpenRequest(false), []party{fails, answers("made")}},
		{"answer and release", 2, withOpenRequest(false), []party{answers("made"), releases}},
		{"answer, skip and replay", 2, withOpenRequest(false), []party{answers("made"), skips}},
		{"dequeue and release", 2, withOpenRequest(true), []party{dequeues, releases}},
		{"two dequeues", 2, withOpenRequest(true), []party{dequeues, dequeues}},
		{"dequeue and relay", 2, withDequeuedBundle, []party{dequeues, relays}},
		{"two relays", 2, withDequeuedBundle, []party{relays, relays}},
	} {
		for name, account := range map[string]embedded.Options{"Strong": {}, "Session": {Consistency: "Session"}} {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				turns := tc.turns
				if raced {
					turns = 1
				}
				everyOrderOn(t, account, turns, tc.prepare, tc.parties...)
			})
		}
	}
}

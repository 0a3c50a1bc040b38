package cosmos

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// ofKind returns n events of one kind.
func ofKind(actor domain.ActorID, kind string, n int) []domain.Event {
	events := make([]domain.Event, n)
	for i := range events {
		events[i] = repositorytest.Event(actor, repositorytest.WithContentType(kind))
	}
	return events
}

// Saves of several kinds arrive while no event waits. Any node then finds in the head which kind comes
// first, and no Save raises an entry.
func TestAChoiceBetweenFronts_ReadsNoEntry(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{TailEvents: 2}, true)
	for round := range 5 {
		for _, kind := range []string{"b", "c", "a"} {
			s.save(node, 0, ofKind(s.actor, kind, 3))
		}
		node.AwaitHints(t.Context(), s.actor)
		for i, kind := range []string{"b", "c", "a"} {
			other := s.node(Options{TailEvents: 2}, true)
			calls := s.line.Calls()
			b, err := repositorytest.Peek(t.Context(), s.stores(other), s.actor, allGroups, repositorytest.NewBundleID())
			require.NoError(t, err)
			require.Equal(t, kind, b.Events[0].ContentType.String(), "round %d", round)
			if round > 0 && i < 2 {
				require.LessOrEqual(t, s.line.Calls()-calls, 4, "gates, head, the pages of the cabinet, and the bundle")
			}
			_, err = other.Acknowledge(t.Context(), s.actor, b.ID)
			require.NoError(t, err)
			other.AwaitHints(t.Context(), s.actor)
		}
	}
	require.NoError(t, s.repairMailbox(s.actor))
}

// A Replay moves the gate back, so that earlier events wait again. The front that a Save stored before the
// Replay is after these events.
func TestFront_IsUsedOnlyJustBehindTheGate(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{}, true)
	next := func() string {
		b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, repositorytest.NewBundleID())
		require.NoError(t, err)
		_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
		require.NoError(t, err)
		node.AwaitHints(t.Context(), s.actor)
		return fmt.Sprintf("%s%d", b.Events[0].ContentType, b.Events[0].Sequence)
	}
	s.save(node, 0, ofKind(s.actor, "b", 1))
	require.Equal(t, "b1", next())
	s.save(node, 0, ofKind(s.actor, "a", 3))
	require.Equal(t, "a2", next())
	s.save(node, 0, ofKind(s.actor, "b", 3))
	s.save(node, 0, ofKind(s.actor, "a", 3)) // the front of cabinet a is the event with number 8
	b, err := node.Replay(t.Context(), s.actor, groupOf(t, domain.TimeSeries), becauseOfATest)
	require.NoError(t, err)
	require.NoError(t, node.Release(t.Context(), s.actor, b.ID, becauseOfATest))
	for _, want := range []string{"a2", "b5"} {
		require.Equal(t, want, next())
	}
	require.NoError(t, s.repairMailbox(s.actor))
}

// If a recipient has many cabinets, Saves raise entries and store no fronts, because fronts would make the
// head too large.
func TestFronts_AreStoredOnlyWithFewCabinets(t *testing.T) {
	for _, kinds := range []int{maxFronts, maxFronts + 1} {
		s := newTrust(t)
		node := s.node(Options{}, true)
		for range 2 {
			var events []domain.Event
			for kind := range kinds {
				events = append(events, ofKind(s.actor, fmt.Sprint("kind-", kind), 1)...)
			}
			s.save(node, 0, events)
			_, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups)
			require.NoError(t, err)
			node.AwaitHints(t.Context(), s.actor)
		}
		h, err := node.beginCall("test").readHead(t.Context(), s.actor)
		require.NoError(t, err)
		require.Len(t, h.Cabinets, kinds)
		for _, last := range h.Cabinets {
			require.Equal(t, kinds <= maxFronts, last.Front != front{}, "%d kinds", kinds)
		}
	}
}

func TestAFrontThatIsWrong_IsFoundAndRepaired(t *testing.T) {
	s := newTrust(t)
	node := s.node(Options{}, true)
	for range 2 {
		s.save(node, 0, ofKind(s.actor, "a", 3))
		if _, err := repositorytest.Drain(t.Context(), s.stores(node), s.actor, allGroups); err != nil {
			t.Fatal(err)
		}
		node.AwaitHints(t.Context(), s.actor)
	}
	s.save(node, 0, ofKind(s.actor, "a", 3))
	require.NoError(t, s.auditMailbox(s.actor))
	c := node.beginCall("test")
	h, err := c.readHead(t.Context(), s.actor)
	require.NoError(t, err)
	for name, last := range h.Cabinets {
		require.Equal(t, front{7, 7}, last.Front)
		last.Front[1]++
		h.Cabinets[name] = last
	}
	_, err = c.Put(t.Context(), node.db.catalog, h.PartitionKey, headID, h.etag, h)
	require.NoError(t, err)
	report, err := s.checkMailbox(s.actor, true)
	require.NoError(t, err)
	require.Equal(t, []string{headWrong}, kindsOfFindings(report))
	require.EqualValues(t, 1, report.Repaired)
	require.NoError(t, s.auditMailbox(s.actor))
}

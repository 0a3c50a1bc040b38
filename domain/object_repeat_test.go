package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

// storeUpdate applies calls in one update, stores the changes and returns the outcomes.
func (s *objectStore) storeUpdate(ids []string, calls ...[]domain.ObjectEvent) []domain.ObjectOutcome {
	s.t.Helper()
	changes, outcomes := s.newUpdate(ids, calls...)
	s.storeChanges(changes)
	s.checkObject()
	return outcomes
}

// storeOtherUpdates stores n updates of a second writer, which spill the rows that were in the
// object.
func (s *objectStore) storeOtherUpdates(n int) {
	s.t.Helper()
	for i := range n {
		s.storeUpdate([]string{fmt.Sprint("other-", i)}, objecttest.Calls(fmt.Sprintf("[C@FF%02d]", i))[0])
	}
}

func TestObjectUpdateThatIsStoredIsNotRepeated(t *testing.T) {
	for _, others := range []int{0, 1, domain.MaxObjectWrites - 1} {
		for _, limits := range limitsOfTables {
			s := newObjectStore(t, limits)
			events := objecttest.Calls("[C@C1, D@D1, C@-+5]")[0]
			first := s.storeUpdate([]string{"first"}, events)
			// The update contains only a duplicate and adds no row, so only Object.Writes records
			// that it is stored.
			again := s.storeUpdate([]string{"second"}, events[:1])
			require.Equal(t, []domain.ObjectOutcome{domain.ObjectStored, domain.ObjectStored, domain.ObjectStored}, first)
			require.Equal(t, []domain.ObjectOutcome{domain.ObjectDuplicate}, again)
			s.storeOtherUpdates(others)
			want := s.object
			changes, outcomes := s.newUpdate([]string{"second"}, events[:1])
			require.True(t, changes.IsEmpty)
			require.Equal(t, again, outcomes)
			changes, outcomes = s.newUpdate([]string{"half", "quarter", "second"}, events[:1])
			require.True(t, changes.IsEmpty, "the larger update was stored")
			require.Equal(t, again, outcomes)
			require.Equal(t, want, s.object)
			if others < domain.MaxObjectWrites-1 {
				changes, outcomes = s.newUpdate([]string{"first"}, events)
				require.True(t, changes.IsEmpty)
				require.Equal(t, first, outcomes)
			}
		}
	}
}

func TestObjectRowIsRecognizedByItsWriteAfterManyOthers(t *testing.T) {
	for _, limits := range limitsOfTables {
		s := newObjectStore(t, limits)
		events := objecttest.Calls("[C@C1, D@D1, C@-+5]")[0]
		first := s.storeUpdate([]string{"first"}, events)
		s.storeOtherUpdates(domain.MaxObjectWrites)
		require.Equal(t, first, s.storeUpdate([]string{"half", "first"}, events))
		require.Zero(t, s.object.Duplicates)
		require.EqualValues(t, len(events)+domain.MaxObjectWrites, s.object.Events)
	}
}

func TestObjectEventOfTwoCallsInOneUpdateIsADuplicate(t *testing.T) {
	s := newObjectStore(t, domain.ObjectLimits{})
	events := objecttest.Calls("[C@C1, C@-]")[0]
	twice := slices.Concat(events, events)
	stored, duplicate := domain.ObjectStored, domain.ObjectDuplicate
	require.Equal(t, []domain.ObjectOutcome{stored, stored, duplicate, duplicate}, s.storeUpdate([]string{"a"}, events, events))
	require.EqualValues(t, 2, s.object.Duplicates)
	require.Equal(t, []domain.ObjectOutcome{duplicate, duplicate, duplicate, duplicate}, s.storeUpdate([]string{"b"}, twice))
	require.EqualValues(t, 4, s.object.Duplicates, "an event that a call has twice counts once")
}

// If a message with an event without sequencer is delivered again, the event is a duplicate.
func TestObjectEventWithoutSequencerIsADuplicateByItsMessage(t *testing.T) {
	for _, limits := range limitsOfTables {
		s := newObjectStore(t, limits)
		e := objecttest.Calls("[C@-]")[0][0]
		message := func(id string, index int) []domain.ObjectEvent {
			e.Carrier = domain.Carrier{Message: id, Index: index}
			return []domain.ObjectEvent{e}
		}
		s.storeUpdate(nil, slices.Concat(message("a", 0), message("a", 1), message("b", 0)))
		require.EqualValues(t, 3, s.object.Events, "two equal events in one message are two events")
		s.storeOtherUpdates(3)
		s.storeUpdate(nil, message("a", 1))
		require.EqualValues(t, 6, s.object.Events)
		require.EqualValues(t, 1, s.object.Duplicates)
	}
}

// With 1,000 events without sequencer, all numbers are unique. The rows are sorted by number,
// although the sequencer texts are not.
func TestObjectNumbers_AreUniqueBeyond255(t *testing.T) {
	const n = 1000
	s := newObjectStore(t, domain.DefaultObjectLimits)
	e := objecttest.Calls("[C@-]")[0][0]
	for i := range n {
		e.Carrier.Index = i
		s.ingestCalls([]domain.ObjectEvent{e})
	}
	s.checkObject()
	texts := make(map[string]bool)
	for i, r := range s.rows() {
		require.EqualValues(t, i+1, r.Number)
		texts[r.SequencerText()] = true
	}
	require.Len(t, texts, n)
	require.EqualValues(t, n, s.object.Current.Number)
}

func TestObjectLimits(t *testing.T) {
	s := newObjectStore(t, domain.DefaultObjectLimits)
	for i := range 300 {
		s.ingestCalls(objecttest.Calls(fmt.Sprintf("[C@%04X]", i))[0])
		s.checkObject()
		require.LessOrEqual(t, len(s.object.Rows), domain.DefaultObjectLimits.Rows)
	}
	require.Zero(t, s.queries, "new events of one version need no spilled row")
	s.ingestCalls(objecttest.Calls("[D@FFFF]")[0])
	require.Zero(t, s.queries, "the deletion of the only version needs no spilled row")

	large := objecttest.Calls("[C@1, C@2]")[0]
	for i := range large {
		large[i].Attributes = string(make([]byte, 16<<10))
	}
	s = newObjectStore(t, domain.DefaultObjectLimits)
	s.ingestCalls(large)
	s.checkObject()
	require.Len(t, s.object.Rows, 1, "the newest row is never spilled")
}

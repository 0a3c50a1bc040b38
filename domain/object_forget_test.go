package domain_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

const day = 24 * time.Hour

// A forgettingStore is an objectStore that forgets rows after a retention, by a simulated clock.
type forgettingStore struct {
	*objectStore
	retention domain.ObjectRetention
	now       time.Time
	isStored  bool
	forgotten map[domain.ObjectRowID]bool
}

func newForgettingStore(t testing.TB, limits domain.ObjectLimits, retention time.Duration) *forgettingStore {
	return &forgettingStore{
		objectStore: newObjectStore(t, limits), retention: domain.ObjectRetention(retention),
		now: objecttest.FirstMoment, forgotten: make(map[domain.ObjectRowID]bool),
	}
}

// ingestOne ingests one event. It requires that the event then has a row, unless the event is too
// old.
func (s *forgettingStore) ingestOne(e domain.ObjectEvent) domain.ObjectOutcome {
	s.t.Helper()
	if !s.isStored {
		s.object.ForgottenTo = s.retention.Horizon(s.now)
	}
	outcome := s.ingestCalls([]domain.ObjectEvent{e})[0]
	s.isStored = s.isStored || outcome == domain.ObjectStored
	isThere := slices.ContainsFunc(s.rows(), func(r domain.ObjectRow) bool { return r.ID() == e.ID() })
	require.Equal(s.t, outcome != domain.ObjectTooOld, isThere, "outcome %v", outcome)
	if s.forgotten[e.ID()] {
		require.Equal(s.t, domain.ObjectTooOld, outcome, "a forgotten event of %v came back at %v", e.Time, s.now)
	}
	s.checkObject()
	return outcome
}

// sweepNow forgets all rows that the retention permits to forget.
func (s *forgettingStore) sweepNow() {
	s.t.Helper()
	if !s.isStored {
		return
	}
	before, forgotten := s.rows(), s.object.ForgottenRows
	var after domain.ObjectOrder
	for hasMore := true; hasMore; {
		var changes domain.ObjectChanges
		changes, after, hasMore = s.forgetAfter(after)
		s.storeChanges(changes)
		s.checkForgotten(before)
		if changes.IsGone {
			require.Empty(s.t, s.rows())
			require.Empty(s.t, s.heads)
			s.object, s.isStored = domain.Object{Name: s.object.Name}, false
			return
		}
		hasMore = hasMore || !changes.IsEmpty
	}
	require.EqualValues(s.t, len(before)-len(s.rows()), s.object.ForgottenRows-forgotten)
}

// forgetAfter runs one update that forgets rows, and returns its changes and the results of Forget.
func (s *forgettingStore) forgetAfter(after domain.ObjectOrder) (changes domain.ObjectChanges, last domain.ObjectOrder, hasMore bool) {
	changes, _ = s.updateBy(nil, func(u *domain.ObjectUpdate) []domain.ObjectOutcome {
		last, hasMore = u.Forget(s.retention, s.now, after)
		return nil
	})
	return changes, last, hasMore
}

// checkForgotten records which of the rows in before were forgotten, and requires that the
// retention permitted this.
func (s *forgettingStore) checkForgotten(before []domain.ObjectRow) {
	s.t.Helper()
	s.checkObject()
	left := make(map[domain.ObjectRowID]bool)
	leftOf := make(map[domain.VersionID]bool)
	for _, r := range s.rows() {
		left[r.ID()], leftOf[r.Version] = true, true
	}
	newest := make(map[domain.VersionID]domain.ObjectRow)
	for _, r := range before {
		newest[r.Version] = r
	}
	for _, r := range before {
		if left[r.ID()] {
			continue
		}
		s.forgotten[r.ID()] = true
		require.False(s.t, r.Time.IsZero())
		age := s.now.Sub(r.Time)
		require.Greater(s.t, age, time.Duration(s.retention))
		if n := newest[r.Version]; n.ID() == r.ID() {
			require.False(s.t, n.Type == domain.ObjectCreated || n.IsMarker(), "the newest row of a version that exists is forgotten")
			require.Greater(s.t, age, domain.MinDeadRetention)
			require.False(s.t, leftOf[r.Version], "an older row of the version is left")
		}
	}
}

// stretchTimes returns the events, with each second between their times replaced by two days.
func stretchTimes(events []domain.ObjectEvent) []domain.ObjectEvent {
	events = slices.Clone(events)
	for i := range events {
		events[i].Time = objecttest.FirstMoment.Add(events[i].Time.Sub(objecttest.FirstMoment) * time.Duration(2*day/time.Second))
	}
	return events
}

func TestObjectForgets(t *testing.T) {
	for _, tc := range []struct {
		name      string
		script    string // sequence of events whose times are days
		retention time.Duration
		at        time.Duration
		want      string
	}{
		{"nothing without a retention", "[C@1+0, C@2+1]", 0, 900 * day, "C@1· C@2+"},
		{"rows that are older than the retention", "[C@1+0, C@2+1, C@3+2]", 3 * day, 4*day + time.Second, "C@3+"},
		{"no row that is as old as the retention", "[C@1+0, C@2+1, C@3+2]", 3 * day, 3 * day, "C@1· C@2· C@3+"},
		{"no newest row of a version that exists", "[C@1/a+0, C@2/b+1, M@3/c+2]", day, 900 * day, "C@1/a· C@2/b· M@3/c·"},
		{"a deleted version only after 14 days", "[C@1/a+0, D@2/a+1, C@3/b+2]", day, 14 * day, "D@2/a· C@3/b+"},
		{"a deleted version completely after its last row is older than 14 days", "[C@1/a+0, D@2/a+1, C@3/b+2]", day, 16 * day, "C@3/b+"},
		{"a deleted object completely", "[C@1/a+0, D@2/a+1, M@3/b+2, D@4/b+3]", day, 18 * day, ""},
		{"no row of a deleted object before the end of the retention", "[C@1+0, D@2+1]", 30 * day, 31*day + time.Second, "D@2·"},
		{"a marker that was deleted", "[C@1/a+0, M@2/b+1, D@3/b+2]", day, 900 * day, "C@1/a+"},
		{"no row of unknown time", "[C@1!, C@2+1, C@3+2]", day, 900 * day, "C@1· C@3+"},
		{"no deletion above a row of unknown time", "[C@1!, D@2+1]", day, 900 * day, "C@1· D@2·"},
		{"rows without sequencer, but not the row that they are behind", "[C@1+0, C@2+1] [C@-+2] [C@-+3]", day, 5 * day, "C@2· C@2-02+"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, limits := range limitsOfTables {
				s := newForgettingStore(t, limits, tc.retention)
				for _, events := range objecttest.Calls(tc.script) {
					for _, e := range events {
						if !e.Time.IsZero() {
							e.Time = objecttest.FirstMoment.Add(e.Time.Sub(objecttest.FirstMoment) * time.Duration(day/time.Second))
						}
						s.ingestOne(e)
					}
				}
				s.now = s.now.Add(tc.at)
				s.sweepNow()
				require.Equal(t, tc.want, s.describe(), "limits %v", limits)
				require.Equal(t, tc.want != "", s.isStored)
			}
		})
	}
}

// An object in doubt forgets no rows, because their order is unknown.
func TestObjectInDoubtForgetsNothing(t *testing.T) {
	s := newForgettingStore(t, domain.ObjectLimits{Rows: 2}, day)
	for i, text := range []string{"000000000000000000000000000089A4000000000018d6ea", "00000000000004420000000000028963", "00000000000004420000000000028964"} {
		sequencer := must(domain.ParseSequencer(domain.OpaqueSequencer, text))
		s.ingestOne(domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer, Time: s.now.Add(time.Duration(i))})
	}
	s.now = s.now.Add(900 * day)
	s.sweepNow()
	require.Len(t, s.rows(), 3)
}

// An event whose row was forgotten is too old when it is reported again, even with a different
// time.
func TestObjectForgottenSequencerIsTooOldAtAnyTime(t *testing.T) {
	s := newForgettingStore(t, domain.ObjectLimits{}, day)
	events := objecttest.Calls("[C@1, C@2, C@3]")[0]
	for _, e := range events {
		s.ingestOne(e)
	}
	s.now = s.now.Add(2 * day)
	s.sweepNow()
	require.Equal(t, "C@3+", s.describe())
	for _, at := range []time.Time{{}, events[0].Time.Add(time.Second), s.now} {
		e := events[1]
		e.Time = at
		require.Equal(t, domain.ObjectTooOld, s.ingestOne(e))
	}
	events[2].Time = time.Time{}
	require.Equal(t, domain.ObjectDuplicate, s.ingestOne(events[2]), "the row is stored")
	longer := domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: must(domain.ParseSequencer(domain.OpaqueSequencer, "x")), Time: s.now}
	require.Equal(t, domain.ObjectStored, s.ingestOne(longer), "the order of the event is unknown")
}

// After an object was completely forgotten, its old events do not create it again, even if a new
// event has created it meanwhile.
func TestObject_CompletelyForgottenIsNotRecreatedByOldEvents(t *testing.T) {
	for _, retention := range []time.Duration{day, 30 * day} {
		s := newForgettingStore(t, domain.ObjectLimits{}, retention)
		events := objecttest.Calls("[C@1, D@2, D@-]")[0]
		for _, e := range events {
			s.ingestOne(e)
		}
		s.now = s.now.Add(31 * day)
		s.sweepNow()
		require.False(t, s.isStored)
		for range 2 {
			for _, e := range events {
				require.Equal(t, domain.ObjectTooOld, s.ingestOne(e))
			}
			e := objecttest.Calls("[C@3]")[0][0]
			e.Time = s.now
			s.ingestOne(e)
			require.Len(t, s.rows(), 1)
			s.now = s.now.Add(day)
		}
	}
}

// TestObjectRows_ForgottenAreNotStoredAgain delivers random histories in random order, each event
// three times, with sweeps in between. Forgotten rows are not stored again, and a store that spills
// rows forgets the same rows as a store that does not.
func TestObjectRows_ForgottenAreNotStoredAgain(t *testing.T) {
	forgotten, gone, queries := 0, 0, 0
	for seed := range uint64(historyCount(t, 150)) {
		rng := newRNG(seed)
		events := stretchTimes(objecttest.RandomBucket(rng, 40, seed%2 == 0, time.Millisecond).Events)
		limits := []domain.ObjectLimits{{Rows: 1}, {Rows: 2}, {Rows: 5}}[rng.IntN(3)]
		retention := time.Duration(1+rng.IntN(20)) * day
		s, plain := newForgettingStore(t, limits, retention), newForgettingStore(t, domain.ObjectLimits{}, retention)
		for range 3 {
			for _, i := range rng.Perm(len(events)) {
				require.Equal(t, plain.ingestOne(events[i]), s.ingestOne(events[i]), "seed %d", seed)
				if rng.IntN(4) > 0 {
					continue
				}
				moved := time.Duration(rng.Int64N(int64(9 * day)))
				for _, s := range []*forgettingStore{s, plain} {
					s.now = s.now.Add(moved)
					s.sweepNow()
				}
				require.Equal(t, plain.describe(), s.describe(), "seed %d", seed)
				require.Equal(t, plain.isStored, s.isStored, "seed %d", seed)
				if len(s.forgotten) > 0 && !s.isStored {
					gone++
				}
			}
		}
		forgotten += len(s.forgotten)
		queries += s.queries
	}
	require.Positive(t, forgotten)
	require.Positive(t, gone)
	require.Positive(t, queries)
}

// TestObjectRetention_DoesNotChangeTheCurrentState delivers each event before it is as old as the
// retention, with sweeps in between. It requires that the object's current state is the state of
// the simulated bucket.
func TestObjectRetention_DoesNotChangeTheCurrentState(t *testing.T) {
	forgotten := 0
	for seed := range uint64(historyCount(t, 1500)) {
		rng := newRNG(seed)
		b := objecttest.RandomBucket(rng, 30, seed%2 == 0, time.Millisecond)
		events := stretchTimes(b.Events)
		retention := time.Duration(1+rng.IntN(10)) * day
		s := newForgettingStore(t, domain.ObjectLimits{Rows: rng.IntN(4)}, retention)
		for _, d := range deliveriesWithin(rng, events, retention) {
			s.now = d.at
			s.ingestOne(events[d.event])
			if rng.IntN(2) == 0 {
				s.sweepNow()
			}
		}
		current := ""
		if s.object.Current != nil {
			current = s.object.Current.ETag
		}
		require.Equal(t, b.Current(), current, "seed %d", seed)
		forgotten += len(s.forgotten)
	}
	require.Positive(t, forgotten)
}

type delivery struct {
	event int
	at    time.Time
}

// deliveriesWithin returns two deliveries of each event, ordered by time. The first is less than
// within after the event, and the second is at any later time.
func deliveriesWithin(rng *rand.Rand, events []domain.ObjectEvent, within time.Duration) (all []delivery) {
	for i := range events {
		first := events[i].Time.Add(time.Duration(rng.Int64N(int64(within))))
		all = append(all, delivery{i, first}, delivery{i, first.Add(time.Duration(rng.Int64N(int64(40 * day))))})
	}
	slices.SortStableFunc(all, func(a, b delivery) int { return a.at.Compare(b.at) })
	return all
}

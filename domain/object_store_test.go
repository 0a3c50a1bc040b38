package domain_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

// An objectStore stores one object in memory. Like a real store, it stores the newest rows in the
// object and the older rows separately. It checks the invariants after each update.
type objectStore struct {
	t       testing.TB
	limits  domain.ObjectLimits
	object  domain.Object
	spilled map[domain.ObjectRowID]domain.ObjectRow
	heads   map[domain.VersionID]domain.ObjectRow
	updates int
	queries int
	advance int // maximum number of spilled rows that one update moves in advance; 0: no rows are moved in advance
	moved   int // number of updates that moved rows in advance
}

func newObjectStore(t testing.TB, limits domain.ObjectLimits) *objectStore {
	return &objectStore{
		t: t, limits: limits,
		object:  domain.Object{Name: must(domain.ParseObjectName("bucket", "key"))},
		spilled: map[domain.ObjectRowID]domain.ObjectRow{}, heads: map[domain.VersionID]domain.ObjectRow{},
	}
}

// ingestCalls applies calls in one update, and stores its changes.
func (s *objectStore) ingestCalls(calls ...[]domain.ObjectEvent) []domain.ObjectOutcome {
	s.t.Helper()
	s.updates++
	changes, outcomes := s.newUpdate([]string{strconv.Itoa(s.updates)}, calls...)
	for s.advance > 0 && s.moveInAdvance(changes.Moved) {
		changes, outcomes = s.newUpdate([]string{strconv.Itoa(s.updates)}, calls...)
	}
	s.storeChanges(changes)
	return outcomes
}

// moveInAdvance moves rows by a separate update, and reports whether it moved any.
func (s *objectStore) moveInAdvance(rows []domain.ObjectRow) bool {
	s.t.Helper()
	changes, _ := s.updateBy(nil, func(u *domain.ObjectUpdate) []domain.ObjectOutcome {
		u.Move(rows, s.advance)
		return nil
	})
	if changes.IsEmpty {
		return false
	}
	require.LessOrEqual(s.t, len(changes.Replace)+len(changes.Delete), s.advance, "spilled rows")
	s.moved++
	s.storeChanges(changes)
	s.checkObject()
	return true
}

// newUpdate returns the changes and outcomes of an update that applies calls.
func (s *objectStore) newUpdate(ids []string, calls ...[]domain.ObjectEvent) (domain.ObjectChanges, []domain.ObjectOutcome) {
	s.t.Helper()
	return s.updateBy(ids, func(u *domain.ObjectUpdate) (outcomes []domain.ObjectOutcome) {
		for _, events := range calls {
			outcomes = append(outcomes, u.Apply(events)...)
		}
		return outcomes
	})
}

// updateBy runs do in an update, and returns the changes and outcomes. It repeats the update until
// the results of all its queries are known.
func (s *objectStore) updateBy(ids []string, do func(u *domain.ObjectUpdate) []domain.ObjectOutcome) (domain.ObjectChanges, []domain.ObjectOutcome) {
	s.t.Helper()
	answers := make(domain.SpilledAnswers)
	for range 20 {
		u := s.object.Update(answers, ids...)
		outcomes := do(u)
		changes, queries := u.Finish(s.limits)
		if len(queries) == 0 {
			return changes, outcomes
		}
		stored := slices.Collect(maps.Values(s.spilled))
		for _, q := range queries {
			s.queries++
			require.NotContains(s.t, answers, q, "the query has an answer")
			answers[q] = q.Select(stored)
		}
	}
	require.FailNow(s.t, "an update makes queries for ever")
	return domain.ObjectChanges{}, nil
}

func (s *objectStore) storeChanges(c domain.ObjectChanges) {
	s.t.Helper()
	if c.IsEmpty {
		return
	}
	s.object = c.Object
	for _, r := range c.Create {
		require.NotContains(s.t, s.spilled, r.ID())
		s.spilled[r.ID()] = r
	}
	for _, r := range c.Replace {
		require.Contains(s.t, s.spilled, r.ID())
		s.spilled[r.ID()] = r
	}
	for _, id := range c.Delete {
		require.Contains(s.t, s.spilled, id)
		delete(s.spilled, id)
	}
	for _, r := range c.Heads {
		s.heads[r.Version] = r
	}
	for _, v := range c.NoHeads {
		delete(s.heads, v)
	}
}

// rows returns all rows of the object in ascending order.
func (s *objectStore) rows() []domain.ObjectRow {
	return slices.SortedFunc(slices.Values(slices.Concat(s.object.Rows, slices.Collect(maps.Values(s.spilled)))), domain.CompareObjectRows)
}

// checkObject requires that the object contains the state that follows from all its rows.
func (s *objectStore) checkObject() {
	s.t.Helper()
	o, all := &s.object, s.rows()
	ids := make(map[domain.ObjectRowID]bool)
	var duplicates, generated int64
	for i := range all {
		r := &all[i]
		require.False(s.t, ids[r.ID()], "two rows of one event")
		ids[r.ID()] = true
		duplicates += r.Duplicates
		if r.IsGenerated() {
			generated++
		}
	}
	require.EqualValues(s.t, len(all), o.Events)
	require.Equal(s.t, duplicates, o.Duplicates)
	require.LessOrEqual(s.t, generated, o.Generated)
	require.True(s.t, generated == o.Generated || o.ForgottenRows > 0)
	require.EqualValues(s.t, len(s.spilled), o.Spilled)
	require.True(s.t, slices.IsSortedFunc(o.Rows, domain.CompareObjectRows))
	for i := range o.Rows {
		require.Positive(s.t, o.Rows[i].Order().Compare(o.Floor), "a row in the object is not above the floor")
	}
	heads := make(map[domain.VersionID]domain.ObjectRow)
	for i := range all[:len(s.spilled)] {
		r := all[i]
		require.Contains(s.t, s.spilled, r.ID(), "a spilled row is above one in the object")
		require.LessOrEqual(s.t, r.Order().Compare(o.Floor), 0, "a spilled row is above the floor")
		heads[r.Version] = r
	}
	require.Equal(s.t, heads, s.heads)
	if i := domain.CurrentRow(all); i < 0 {
		require.Nil(s.t, o.Current)
	} else {
		require.NotNil(s.t, o.Current, "current is %v", all[i].Order())
		require.Equal(s.t, all[i], *o.Current)
	}
	if s.limits.Rows > 0 {
		require.LessOrEqual(s.t, len(o.Rows), s.limits.Rows)
	}
	require.LessOrEqual(s.t, len(o.Writes), domain.MaxObjectWrites)
}

func (s *objectStore) describe() string      { return objecttest.Describe(s.rows(), s.object.Current) }
func (s *objectStore) describePairs() string { return objecttest.DescribePairs(s.rows()) }

package repositorytest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// findEvent returns the event with an id in the mailbox of the recipient, nil if it is not found.
func (f *fixture) findEvent(id domain.EventID) *repository.FoundEvent {
	f.Helper()
	search, err := f.Finder.FindEvent(f.ctx, repository.EventQuery{ID: id, Recipient: f.actor})
	require.NoError(f, err)
	require.Empty(f, search.Next)
	if len(search.Found) == 0 {
		return nil
	}
	require.Len(f, search.Found, 1)
	return &search.Found[0]
}

// requireEvent requires that an event is found as it was saved, and returns it.
func (f *fixture) requireEvent(e *domain.Event) *repository.FoundEvent {
	f.Helper()
	found := f.findEvent(e.ID)
	require.NotNil(f, found, "event %s", e.ID)
	want := *e
	want.Payload = nil
	require.Equal(f, want, found.Event)
	require.False(f, found.Saved.IsZero())
	require.False(f, found.IsReserved)
	require.False(f, found.HasMore)
	return found
}

// findEverywhere searches all mailboxes for an event, in several calls, and returns the recipients of
// the events that it finds.
func (f *fixture) findEverywhere(q repository.EventQuery) []domain.ActorID {
	f.Helper()
	var recipients []domain.ActorID
	for {
		search, err := f.Finder.FindEvent(f.ctx, q)
		require.NoError(f, err)
		require.Empty(f, search.Unread)
		for i := range search.Found {
			recipients = append(recipients, search.Found[i].Recipient)
		}
		if q.After = search.Next; q.After == "" {
			return recipients
		}
	}
}

// bundleStates returns the states of e.Bundles, in the same order.
func bundleStates(e *repository.FoundEvent) (states []repository.BundleState) {
	for _, b := range e.Bundles {
		states = append(states, b.State)
	}
	return states
}

var findRules = []contractRule{
	{name: "an event that waits is found with its number and what waits before it", capacity: 3, test: func(f *fixture) {
		events := f.saveNew(8)
		for i := range events {
			e := f.requireEvent(&events[i])
			require.EqualValues(f, i+1, e.Sequence)
			require.EqualValues(f, i, e.Before)
			require.Equal(f, TimeSeries, e.Group)
			require.False(f, e.IsAcknowledged)
			require.Empty(f, e.Bundles)
			require.Equal(f, repository.MailboxState{}, e.Mailbox)
			require.Nil(f, e.FirstWaiting)
		}
		f.wantDequeue(events...)
		later := f.saveNew(5)
		for i := range later {
			require.EqualValues(f, i, f.requireEvent(&later[i]).Before)
		}
	}},

	{name: "an id that was not received is not found", capacity: 3, test: func(f *fixture) {
		search, err := f.Finder.FindEvent(f.ctx, repository.EventQuery{ID: NewEventID(), Recipient: f.actor})
		require.NoError(f, err)
		require.Empty(f, search, "the recipient has no mailbox")
		f.saveNew(7)
		f.saveNew(1, WithOrigin(domain.Charges))
		require.Nil(f, f.findEvent(NewEventID()))
	}},

	{name: "an event is found in the bundle that is open, and in the one that was dequeued", capacity: 4, test: func(f *fixture) {
		events := f.saveNew(6)
		open := f.peek()
		e := f.requireEvent(&events[5])
		require.False(f, e.IsAcknowledged)
		require.Equal(f, []repository.BundleState{repository.BundleOpen}, bundleStates(e))
		f.requireSameBundle(open.Bundle, e.Bundles[0].Bundle)
		require.Zero(f, e.Bundles[0].Closed)
		f.requireSameBundle(open.Bundle, *e.Mailbox.Open)
		f.acknowledge(open)
		e = f.requireEvent(&events[0])
		require.True(f, e.IsAcknowledged)
		require.Equal(f, []repository.BundleState{repository.BundleDequeued}, bundleStates(e))
		f.requireSameBundle(open.Bundle, e.Bundles[0].Bundle)
		require.False(f, e.Bundles[0].Closed.IsZero())
	}},

	{name: "an event is found in each bundle that it was in", capacity: 4, test: func(f *fixture) {
		events := f.saveNew(2)
		released := f.peek()
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, released.ID, because))
		require.Equal(f, []repository.BundleState{repository.BundleReleased}, bundleStates(f.requireEvent(&events[1])))
		skipped := f.peek()
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, skipped.ID, because))
		require.Equal(f, []repository.BundleState{repository.BundleReleased, repository.BundleSkipped}, bundleStates(f.requireEvent(&events[1])))
		_, err := f.Admin.Replay(f.ctx, f.actor, TimeSeries, because)
		require.NoError(f, err)
		e := f.requireEvent(&events[0])
		require.Equal(f, []repository.BundleState{repository.BundleReleased, repository.BundleOpen}, bundleStates(e))
		require.Equal(f, skipped.ID, e.Bundles[1].ID)
		require.False(f, e.IsAcknowledged)
	}},

	{name: "an event that waits behind an open bundle names it", capacity: 4, test: func(f *fixture) {
		f.saveNew(3, WithOrigin(domain.Charges))
		open := f.peek()
		later := f.saveNew(1, WithOrigin(domain.MarketRoles))
		e := f.requireEvent(&later[0])
		require.Empty(f, e.Bundles)
		require.Equal(f, open.ID, e.Mailbox.Open.ID)
		require.Zero(f, e.Before)
		other := f.saveNew(1)
		require.Nil(f, f.requireEvent(&other[0]).Mailbox.Open, "it is of another group")
	}},

	{name: "an event that waits behind another cabinet names it", test: func(f *fixture) {
		first := f.saveNew(2, WithOrigin(domain.Charges))
		second := f.saveNew(1, WithOrigin(domain.MarketRoles))
		third := f.saveNew(1, WithOrigin(domain.Charges), WithContentType("other"))
		f.saveNew(1)
		require.Nil(f, f.requireEvent(&first[1]).FirstWaiting)
		want := &repository.FirstWaiting{Cabinet: first[0].Cabinet(), Sequence: 1}
		require.Equal(f, want, f.requireEvent(&second[0]).FirstWaiting)
		f.wantDequeue(first...)
		require.Nil(f, f.requireEvent(&second[0]).FirstWaiting)
		require.Equal(f, &repository.FirstWaiting{Cabinet: second[0].Cabinet(), Sequence: 3}, f.requireEvent(&third[0]).FirstWaiting)
	}},

	{name: "an event of a frozen mailbox is reported as frozen, and so is its bundle", test: func(f *fixture) {
		events := f.saveNew(1)
		open := f.peek()
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
		e := f.requireEvent(&events[0])
		require.True(f, e.Mailbox.Frozen)
		require.True(f, e.Bundles[0].Frozen)
		require.True(f, f.requireBundle(open.ID, f.actor).Frozen)
	}},

	{name: "an event behind a lost event names the loss", test: func(f *fixture) {
		lost := f.saveNew(lostSave)
		later := f.saveNew(lostSave)
		f.Lose(lost[0].Cabinet(), 1, lostSave)
		e := f.requireEvent(&later[7])
		require.NotEmpty(f, e.Mailbox.Lost)
		require.EqualValues(f, lostSave+7, e.Before)
	}},

	{name: "an id is found in every mailbox that has it, once, in pages of any size", capacity: 5, test: func(f *fixture) {
		shared := f.event()
		var want []domain.ActorID
		for i := range 13 {
			other := f.withActor(NewActor())
			if i%3 == 0 {
				other.saveNew(1)
				continue
			}
			e := shared
			e.Recipient = other.actor
			other.saveNew(i)
			require.Equal(f, repository.Saved{Accepted: 1}, other.save(e))
			if i%2 == 0 {
				other.drain()
			}
			want = append(want, other.actor)
		}
		byName := func(a, b domain.ActorID) int { return slices.Compare([]byte(a.String()), []byte(b.String())) }
		slices.SortFunc(want, byName)
		for _, q := range []repository.EventQuery{{}, {Limit: 1}, {Limit: 4}, {Units: 0.1}, {Time: time.Nanosecond}, {Origin: shared.Origin}} {
			q.ID = shared.ID
			found := f.findEverywhere(q)
			slices.SortFunc(found, byName)
			require.Equal(f, want, found, "%+v", q)
		}
		require.Empty(f, f.findEverywhere(repository.EventQuery{ID: shared.ID, Origin: domain.Charges}))
		require.Empty(f, f.findEverywhere(repository.EventQuery{ID: NewEventID()}))
	}},

	{name: "a bundle is found while it is retained, of one recipient or of all", test: func(f *fixture) {
		f.saveNew(2)
		other := f.withActor(NewActor())
		other.saveNew(3)
		id := NewBundleID()
		open, err := Peek(f.ctx, f.Stores, f.actor, AllGroups, id)
		require.NoError(f, err)
		second, err := Peek(f.ctx, f.Stores, other.actor, AllGroups, id)
		require.NoError(f, err)
		other.acknowledge(second)

		found := f.requireBundle(id, f.actor)
		f.requireSameBundle(open.Bundle, found.Bundle)
		require.Equal(f, repository.BundleOpen, found.State)
		found = f.requireBundle(id, other.actor)
		f.requireSameBundle(second.Bundle, found.Bundle)
		require.Equal(f, repository.BundleDequeued, found.State)
		require.False(f, found.Closed.IsZero())

		search, err := f.Finder.FindBundle(f.ctx, id, domain.ActorID{}, 5)
		require.NoError(f, err)
		require.Len(f, search.Found, 2)
		require.False(f, search.HasMore)
		search, err = f.Finder.FindBundle(f.ctx, id, domain.ActorID{}, 1)
		require.NoError(f, err)
		require.Len(f, search.Found, 1)
		require.True(f, search.HasMore)

		for _, of := range []domain.ActorID{{}, f.actor} {
			search, err = f.Finder.FindBundle(f.ctx, NewBundleID(), of, 5)
			require.NoError(f, err)
			require.Empty(f, search)
		}
	}},
}

// requireBundle requires that a bundle of a recipient is found, and returns it.
func (f *fixture) requireBundle(id domain.BundleID, of domain.ActorID) *repository.FoundBundle {
	f.Helper()
	search, err := f.Finder.FindBundle(f.ctx, id, of, 5)
	require.NoError(f, err)
	require.Len(f, search.Found, 1)
	return &search.Found[0]
}

// findTrace returns the result of a search by trace.
func (f *fixture) findTrace(q repository.EventQuery) repository.EventSearch {
	f.Helper()
	search, err := f.Finder.FindEvent(f.ctx, q)
	require.NoError(f, err)
	require.Empty(f, search.Unread)
	require.Empty(f, search.Found)
	return search
}

var findTraceRules = []contractRule{
	{name: "what a trace has saved and opened is found, and an event names its span", capacity: 3, test: func(f *fixture) {
		f.saveWithSpan(spanOf(1, 1), 2)
		f.saveWithSpan(spanOf(2, 2), 1)
		f.saveWithSpan(spanOf(1, 3), 5)
		f.saveWithSpan(domain.TraceContext{}, 1)
		f.saveWithSpan(spanOf(1, 4), 1, WithOrigin(domain.Charges))
		bundle, _ := f.openTraced(100, 64, spanOf(1, 5))

		search := f.findTrace(repository.EventQuery{Trace: spanOf(1, 0).TraceID, Recipient: f.actor})
		var counts []int
		var first []domain.Sequence
		for _, s := range search.Saves {
			require.False(f, s.Saved.IsZero())
			require.Len(f, s.IDs, s.Count)
			if s.Cabinet.Origin == domain.TimeSeries {
				counts, first = append(counts, s.Count), append(first, s.First)
			}
			e := f.findEvent(s.IDs[0])
			require.Equal(f, s.Span, e.Save)
			require.Equal(f, s.First, e.Sequence)
		}
		require.Equal(f, []int{2, 5}, counts)
		require.Equal(f, []domain.Sequence{1, 4}, first)
		require.Len(f, search.Saves, 3)
		require.Len(f, search.Bundles, 1)
		f.requireSameBundle(bundle, search.Bundles[0].Bundle)

		search = f.findTrace(repository.EventQuery{Trace: spanOf(1, 0).TraceID, Recipient: f.actor, Origin: domain.Charges})
		require.Len(f, search.Saves, 1)
		require.Empty(f, search.Bundles)
		search = f.findTrace(repository.EventQuery{Trace: spanOf(9, 0).TraceID, Recipient: f.actor})
		require.Empty(f, search.Saves)
		require.Empty(f, search.Bundles)
	}},

	{name: "a trace is found in every mailbox that has it", test: func(f *fixture) {
		found := make(map[domain.ActorID]int)
		for i := range 7 {
			other := f.withActor(NewActor())
			other.saveWithSpan(spanOf(byte(7+i%2), i), 2)
		}
		q := repository.EventQuery{Trace: spanOf(7, 0).TraceID, Limit: 2}
		for {
			search := f.findTrace(q)
			for _, s := range search.Saves {
				found[s.Cabinet.Recipient] += s.Count
			}
			if q.After = search.Next; q.After == "" {
				break
			}
		}
		require.Len(f, found, 4)
	}},
}

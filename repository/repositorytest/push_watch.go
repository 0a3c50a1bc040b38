package repositorytest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// newResource returns a resource that no other test uses.
func (f *pushFixture) newResource() domain.Resource {
	f.Helper()
	r, err := domain.Kept(NewActor().String())
	require.NoError(f, err)
	return r
}

func (f *pushFixture) newWatch(owner domain.ActorID) *repository.Watch {
	var random [10]byte
	rand.Read(random[:])
	f.advanceClock(time.Millisecond)
	return &repository.Watch{
		ID: domain.NewWatchID(f.readClock(), random), Owner: owner, Resource: f.newResource(),
		CallbackURL: "https://example.org/hook?a=1&b=<2>", After: 3, Created: f.readClock(),
	}
}

func (f *pushFixture) requireWatch(want *repository.Watch) {
	f.Helper()
	got, err := f.Watches.Watch(f.ctx, want.Owner, want.ID)
	require.NoError(f, err)
	require.NotEmpty(f, got.Version)
	require.NotEqual(f, want.Version, got.Version)
	want.Version = got.Version
	require.Equal(f, want, got)
}

// putResource stores a document. It returns the change that was observed, or nil.
func (f *pushFixture) putResource(r *repository.Resource) *domain.Change {
	f.Helper()
	f.takeObserved()
	version, err := f.Resources.PutResource(f.ctx, r)
	require.NoError(f, err)
	require.NotEmpty(f, version)
	require.NotEqual(f, r.Version, version)
	r.Version = version
	got, err := f.Resources.Resource(f.ctx, r.Resource)
	require.NoError(f, err)
	require.Equal(f, r, got)
	return f.takeObserved()
}

// deleteResource deletes a document. It returns the change that was observed, or nil.
func (f *pushFixture) deleteResource(r *repository.Resource) *domain.Change {
	f.Helper()
	f.takeObserved()
	require.NoError(f, f.Resources.DeleteResource(f.ctx, r.Resource, r.Version))
	_, err := f.Resources.Resource(f.ctx, r.Resource)
	f.wantKind(domain.NotFound, err)
	r.Version = ""
	return f.takeObserved()
}

// takeObserved returns the last change that was observed since the previous call.
func (f *pushFixture) takeObserved() *domain.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.change
	f.change = nil
	return c
}

func (f *pushFixture) observeChange(c domain.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change = &c
	f.changes++
}

func (f *pushFixture) markResource(r domain.Resource, mayBeAbsent bool) int64 {
	f.Helper()
	version, err := f.Changes.MarkWatched(f.ctx, r, mayBeAbsent)
	require.NoError(f, err)
	return version
}

// requireChanges requires that the unpublished changes of a resource are exactly want, in this order.
func (f *pushFixture) requireChanges(r domain.Resource, want ...*domain.Change) {
	f.Helper()
	got, err := f.Changes.Changes(f.ctx, r)
	require.NoError(f, err)
	require.Len(f, got, len(want))
	for i := range want {
		require.Equal(f, *want[i], got[i])
	}
}

func (f *pushFixture) newDocument(r domain.Resource) *repository.Resource {
	return &repository.Resource{Resource: r, Body: []byte(`{"a": "é"}`), Changed: f.readClock()}
}

var watchRules = []pushRule{
	{"AWatchIsCreatedReadReplacedAndDeleted", func(f *pushFixture) {
		w := f.newWatch(NewActor())
		_, err := f.Watches.Watch(f.ctx, w.Owner, w.ID)
		f.wantKind(domain.NotFound, err)
		f.wantKind(domain.NotFound, f.Watches.DeleteWatch(f.ctx, w.Owner, w.ID))
		f.wantKind(domain.NotFound, f.Watches.ReplaceWatch(f.ctx, w))
		require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
		f.requireWatch(w)
		w.CallbackURL = "https://example.org/other"
		require.NoError(f, f.Watches.ReplaceWatch(f.ctx, w))
		f.requireWatch(w)
		require.NoError(f, f.Watches.DeleteWatch(f.ctx, w.Owner, w.ID))
		_, err = f.Watches.Watch(f.ctx, w.Owner, w.ID)
		f.wantKind(domain.NotFound, err)
	}},
	{"AWatchBelongsToItsOwner", func(f *pushFixture) {
		w, other := f.newWatch(NewActor()), f.newWatch(NewActor())
		require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
		other.ID = w.ID
		_, err := f.Watches.Watch(f.ctx, other.Owner, w.ID)
		f.wantKind(domain.NotFound, err)
		f.wantKind(domain.NotFound, f.Watches.DeleteWatch(f.ctx, other.Owner, w.ID))
		require.NoError(f, f.Watches.CreateWatch(f.ctx, other))
		require.NoError(f, f.Watches.DeleteWatch(f.ctx, other.Owner, w.ID))
		f.requireWatch(w)
	}},
	{"AWatchIsReplacedByItsVersionOnly", func(f *pushFixture) {
		w := f.newWatch(NewActor())
		require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
		f.requireWatch(w)
		second := *w
		second.CallbackURL = "https://example.org/second"
		require.NoError(f, f.Watches.ReplaceWatch(f.ctx, &second))
		f.wantKind(domain.Conflict, f.Watches.ReplaceWatch(f.ctx, w))
		third := *w
		third.Resource = f.newResource()
		f.wantKind(domain.Conflict, f.Watches.CreateWatch(f.ctx, &third))
		f.requireWatch(&second)
	}},
	{"AListIsInTheOrderInWhichWatchesWereMade", func(f *pushFixture) {
		owner := NewActor()
		var all []*repository.Watch
		for range 7 {
			w := f.newWatch(owner)
			require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
			all = append(all, w)
		}
		require.NoError(f, f.Watches.CreateWatch(f.ctx, f.newWatch(NewActor())))
		for _, page := range []struct{ offset, limit, from, to int }{{0, 100, 0, 7}, {0, 3, 0, 3}, {5, 3, 5, 7}, {7, 3, 7, 7}, {100, 1, 7, 7}} {
			got, err := f.Watches.Watches(f.ctx, owner, page.offset, page.limit)
			require.NoError(f, err)
			require.Len(f, got, page.to-page.from)
			for i := range got {
				require.Equal(f, all[page.from+i].ID, got[i].ID)
			}
		}
	}},
	{"AReplacementAndADeletionAreNoted", func(f *pushFixture) {
		w := f.newWatch(NewActor())
		f.id, f.stream = w.ID.Cursor(w.Owner), w.Resource.Stream()
		require.NoError(f, f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: f.stream}))
		require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
		f.requireWatch(w)
		w.CallbackURL = "https://example.org/other"
		require.NoError(f, f.Watches.ReplaceWatch(f.ctx, w))
		f.requireWatch(w)
		listed := f.shardEntry()
		require.Equal(f, f.stream, listed.Stream)
		w.CallbackURL = "https://example.org/third"
		require.NoError(f, f.Watches.ReplaceWatch(f.ctx, w))
		replaced := f.shardEntry()
		require.NotEqual(f, listed.Changes, replaced.Changes)
		require.NoError(f, f.Watches.DeleteWatch(f.ctx, w.Owner, w.ID))
		require.NotEqual(f, replaced.Changes, f.shardEntry().Changes)
	}},
	{"ADeletionListsTheCursor", func(f *pushFixture) {
		w := f.newWatch(NewActor())
		f.id = w.ID.Cursor(w.Owner)
		require.NoError(f, f.Watches.CreateWatch(f.ctx, w))
		require.NoError(f, f.Cursors.Create(f.ctx, f.id, domain.Standing{Stream: w.Resource.Stream()}))
		require.NoError(f, f.Watches.DeleteWatch(f.ctx, w.Owner, w.ID))
		require.Equal(f, w.Resource.Stream(), f.shardEntry().Stream)
	}},
}

var resourceRules = []pushRule{
	{"ADocumentIsCreatedReplacedAndDeleted", func(f *pushFixture) {
		r := f.newDocument(f.newResource())
		_, err := f.Resources.Resource(f.ctx, r.Resource)
		f.wantKind(domain.NotFound, err)
		for range 2 { // the resource can be created again
			require.Nil(f, f.putResource(r))
			r.Body = []byte(`[1]`)
			require.Nil(f, f.putResource(r))
			require.Nil(f, f.deleteResource(r))
		}
		f.requireChanges(r.Resource)
	}},
	{"ADocumentIsChangedByItsVersionOnly", func(f *pushFixture) {
		for _, isWatched := range []bool{false, true} {
			r := f.newDocument(f.newResource())
			if isWatched {
				f.markResource(r.Resource, true)
			}
			r.Version = "none"
			_, err := f.Resources.PutResource(f.ctx, r)
			f.wantKind(domain.NotFound, err)
			f.wantKind(domain.NotFound, f.Resources.DeleteResource(f.ctx, r.Resource, "none"))
			r.Version = ""
			f.putResource(r)
			old := *r
			_, err = f.Resources.PutResource(f.ctx, f.newDocument(r.Resource))
			f.wantKind(domain.Conflict, err)
			f.putResource(r)
			_, err = f.Resources.PutResource(f.ctx, &old)
			f.wantKind(domain.Conflict, err)
			f.wantKind(domain.Conflict, f.Resources.DeleteResource(f.ctx, r.Resource, old.Version))
		}
	}},
	{"AMarkChangesNoVersion", func(f *pushFixture) {
		r := f.newDocument(f.newResource())
		f.putResource(r)
		require.Zero(f, f.markResource(r.Resource, false))
		require.NotNil(f, f.putResource(r))
	}},
	{"OnlyAnExistingResourceIsWatchedUnlessItMayBeAbsent", func(f *pushFixture) {
		r := f.newDocument(f.newResource())
		_, err := f.Changes.MarkWatched(f.ctx, r.Resource, false)
		f.wantKind(domain.NotFound, err)
		require.Zero(f, f.markResource(r.Resource, true))
		_, err = f.Changes.MarkWatched(f.ctx, r.Resource, false)
		f.wantKind(domain.NotFound, err)
		_, err = f.Resources.Resource(f.ctx, r.Resource)
		f.wantKind(domain.NotFound, err)
		require.Nil(f, f.putResource(r), "a creation is no change")
		require.Zero(f, f.markResource(r.Resource, false))
	}},
	{"EachChangeOfAWatchedDocumentIsStoredOnce", func(f *pushFixture) {
		r := f.newDocument(f.newResource())
		f.putResource(r)
		f.putResource(r)
		require.Zero(f, f.markResource(r.Resource, false), "changes before do not count")
		var want []*domain.Change
		for i := range 6 {
			var change *domain.Change
			event := domain.ResourceUpdated
			if i == 3 {
				event, change = domain.ResourceDeleted, f.deleteResource(r)
			} else if change = f.putResource(r); i == 4 {
				require.Nil(f, change, "it is made again")
				continue
			}
			require.Equal(f, &domain.Change{Resource: r.Resource, Version: int64(len(want) + 1), Event: event, At: f.readClock()}, change)
			want = append(want, change)
			require.EqualValues(f, len(want), f.markResource(r.Resource, true))
		}
		f.requireChanges(r.Resource, want...)
		require.NoError(f, f.Changes.RemoveChange(f.ctx, *want[1]))
		require.NoError(f, f.Changes.RemoveChange(f.ctx, *want[1]))
		f.requireChanges(r.Resource, slices.Delete(want, 1, 2)...)
	}},
	{"ChangesOfOthersAreRefusedAndStoreNothing", func(f *pushFixture) {
		r := f.newDocument(f.newResource())
		f.markResource(r.Resource, true)
		f.putResource(r)
		var all sync.WaitGroup
		var mu sync.Mutex
		wins := 0
		for i := range 8 {
			all.Go(func() {
				mine := *r
				mine.Body = fmt.Appendf(nil, "%d", i)
				if _, err := f.Resources.PutResource(f.ctx, &mine); err == nil {
					mu.Lock()
					defer mu.Unlock()
					wins++
				}
			})
		}
		all.Wait()
		require.Equal(f, 1, wins)
		changes, err := f.Changes.Changes(f.ctx, r.Resource)
		require.NoError(f, err)
		require.Len(f, changes, 1)
	}},
	{"EachChangeOfAWatchedPartyIsStoredOnce", func(f *pushFixture) {
		channel := f.newParty(domain.Channels)
		f.putParty(channel)
		for _, p := range []*repository.Party{f.newParty(domain.Producers), channel, f.newParty(channel.ID.Consumers())} {
			r := domain.PartyOf(p.ID)
			_, err := f.Changes.MarkWatched(f.ctx, r, false)
			if p != channel {
				f.wantKind(domain.NotFound, err)
				f.putParty(p)
				p.Label = "changed"
				f.putParty(p)
				require.Zero(f, f.markResource(r, false))
			}
			f.requireChanges(r)
			found, err := f.Parties.Party(f.ctx, p.ID)
			require.NoError(f, err)
			p.Version = found.Version // MarkWatched may change the version
			var want []*domain.Change
			for i := range 2 {
				f.takeObserved()
				p.Label = fmt.Sprint(i)
				f.putParty(p)
				change := f.takeObserved()
				require.Equal(f, &domain.Change{Resource: r, Version: int64(i + 1), Event: domain.ResourceUpdated, At: f.readClock()}, change)
				want = append(want, change)
			}
			f.requireChanges(r, want...)
			f.requireParties(p.ID.List(), p.ID.String(), 1, p)
			for _, c := range want {
				require.NoError(f, f.Changes.RemoveChange(f.ctx, *c))
			}
			f.requireChanges(r)
		}
		all, err := f.Parties.Parties(f.ctx, channel.ID.Consumers(), "", 100)
		require.NoError(f, err)
		require.Len(f, all, 1)
	}},
	{"EachChangeOfAWatchedSubscriptionIsStoredOnce", func(f *pushFixture) {
		d := f.createDefinition(NewDefinition(NewActor()))
		r := domain.SubscriptionResourceOf(d.Owner, d.ID)
		_, err := f.Changes.MarkWatched(f.ctx, domain.SubscriptionResourceOf(NewActor(), d.ID), false)
		f.wantKind(domain.NotFound, err)
		require.Zero(f, f.markResource(r, false))
		d, err = f.Definitions.Subscription(f.ctx, d.ID)
		require.NoError(f, err)
		d.Paused = true
		_, err = f.Definitions.ReplaceSubscription(f.ctx, d)
		require.NoError(f, err)
		updated := f.takeObserved()
		require.NoError(f, f.Definitions.DeleteSubscription(f.ctx, d.Owner, d.ID, ""))
		deleted := f.takeObserved()
		f.requireChanges(r, updated, deleted)
		require.Equal(f, []domain.ChangeEvent{domain.ResourceUpdated, domain.ResourceDeleted}, []domain.ChangeEvent{updated.Event, deleted.Event})
		_, err = f.Changes.MarkWatched(f.ctx, r, false)
		f.wantKind(domain.NotFound, err)
	}},
	{"UnpublishedChangesAreFound", func(f *pushFixture) {
		var marked []domain.Resource
		for range 3 {
			r := f.newDocument(f.newResource())
			f.markResource(r.Resource, true)
			f.putResource(r)
			f.putResource(r)
			f.putResource(r)
			marked = append(marked, r.Resource)
		}
		find := func(before time.Time) []domain.Resource {
			found, err := f.Changes.Unpublished(f.ctx, before, 1000)
			require.NoError(f, err)
			return slices.DeleteFunc(found, func(r domain.Resource) bool { return !slices.Contains(marked, r) })
		}
		require.Empty(f, find(f.readClock()))
		require.ElementsMatch(f, marked, find(f.readClock().Add(time.Second)))
		require.ElementsMatch(f, marked, find(f.readClock().Add(-2*time.Minute)), "a clock was ahead")
		found, err := f.Changes.Unpublished(f.ctx, f.readClock().Add(time.Second), 2)
		require.NoError(f, err)
		require.Len(f, found, 2)
		for version := range int64(2) {
			require.NoError(f, f.Changes.RemoveChange(f.ctx, domain.Change{Resource: marked[0], Version: version + 1}))
		}
		require.ElementsMatch(f, marked[1:], find(f.readClock().Add(time.Second)))
	}},

	{"ATurnToLookForChangesIsTakenByOne", func(f *pushFixture) {
		takes := func(now time.Time) bool {
			isTaken, err := f.Changes.TakeTurn(f.ctx, now, time.Minute)
			require.NoError(f, err)
			return isTaken
		}
		now := f.readClock().Add(time.Hour) // later than the TakeTurn of any other case
		require.True(f, takes(now))
		require.False(f, takes(now))
		require.False(f, takes(now.Add(time.Minute-time.Second)))
		now = now.Add(time.Minute)
		taken := make(chan bool, 8)
		var taking sync.WaitGroup
		for range cap(taken) {
			taking.Go(func() { taken <- takes(now) })
		}
		taking.Wait()
		close(taken)
		n := 0
		for isTaken := range taken {
			if isTaken {
				n++
			}
		}
		require.Equal(f, 1, n)
		require.True(f, takes(now.Add(-30*time.Minute)), "a clock was ahead")
	}},
}

var versionRules = []pushRule{
	{"AVersionIsAppendedOnceAndInItsPlace", func(f *pushFixture) {
		message := func(version int64) []domain.Message {
			return []domain.Message{{Version: version, Attributes: map[string]string{"version": fmt.Sprint(version)}}}
		}
		outcome := func(version int64) repository.AppendOutcome {
			appended, err := f.Streams.Append(f.ctx, f.stream, message(version))
			require.NoError(f, err)
			require.Len(f, appended, 1)
			require.Equal(f, version-1, appended[0].Position.Number)
			return appended[0].Outcome
		}
		require.Equal(f, repository.AppendGap, outcome(2))
		for version := range int64(40) {
			require.Equal(f, repository.AppendedNow, outcome(version+1))
			require.Equal(f, repository.AppendDuplicate, outcome(version+1))
			require.Equal(f, repository.AppendDuplicate, outcome(1))
			require.Equal(f, repository.AppendGap, outcome(version+3))
		}
		found, err := f.Streams.Read(f.ctx, f.stream, domain.Position{}, 100)
		require.NoError(f, err)
		require.NotEmpty(f, found.Entries)
		for _, e := range found.Entries {
			require.Equal(f, fmt.Sprint(e.Position.Number+1), e.Attributes["version"])
		}
	}},
	{"AVersionThatManyAppendIsAppendedOnce", func(f *pushFixture) {
		var all sync.WaitGroup
		var mu sync.Mutex
		counts := make(map[repository.AppendOutcome]int)
		for range 8 {
			all.Go(func() {
				appended, err := f.Streams.Append(f.ctx, f.stream, []domain.Message{{Version: 1}})
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					counts[appended[0].Outcome]++
				}
			})
		}
		all.Wait()
		require.Equal(f, map[repository.AppendOutcome]int{repository.AppendedNow: 1, repository.AppendDuplicate: 7}, counts)
	}},
	{"AVersionWithAnIDIsRefused", func(f *pushFixture) {
		_, err := f.Streams.Append(f.ctx, f.stream, []domain.Message{{Version: 1, ID: "x"}})
		f.wantKind(domain.Invalid, err)
	}},
}

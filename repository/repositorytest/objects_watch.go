package repositorytest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// WatchedObjects are the ports of objects and of the changes of watched objects.
type WatchedObjects interface {
	repository.Objects
	repository.StoredChanges
}

// A watchedFixture is the environment of a case about changes of objects.
type watchedFixture struct {
	*objectFixture
	changes repository.StoredChanges

	mu       sync.Mutex
	observed []domain.Change
}

// RunObjectWatches checks an implementation against the contract of repository.StoredChanges for objects.
func RunObjectWatches(t *testing.T, open func(t *testing.T) WatchedObjects) {
	for _, r := range objectWatchRules {
		t.Run(r.name, func(t *testing.T) {
			store := open(t)
			f := &watchedFixture{changes: store}
			f.objectFixture = newObjectFixture(t, func(*testing.T) repository.Objects { return store })
			store.Observe(func(c domain.Change) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.observed = append(f.observed, c)
			})
			r.test(f)
		})
	}
}

func (f *watchedFixture) objectResource() domain.Resource { return domain.ObjectResourceOf(f.name) }

func (f *watchedFixture) markObject() int64 {
	f.Helper()
	version, err := f.changes.MarkWatched(f.ctx, f.objectResource(), false)
	require.NoError(f, err)
	return version
}

// wantChanges requires that the object has exactly the changes with these events, and returns them.
// Their versions are consecutive and begin with first.
func (f *watchedFixture) wantChanges(first int64, events ...domain.ChangeEvent) []domain.Change {
	f.Helper()
	found, err := f.changes.Changes(f.ctx, f.objectResource())
	require.NoError(f, err)
	require.Len(f, found, len(events))
	for i, event := range events {
		c := found[i]
		require.WithinDuration(f, time.Now(), c.At, time.Minute)
		c.At = time.Time{}
		require.Equal(f, domain.Change{Resource: f.objectResource(), Version: first + int64(i), Event: event}, c)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Subset(f, f.observed, found)
	return found
}

func (f *watchedFixture) removeChanges(changes ...domain.Change) {
	f.Helper()
	for _, c := range changes {
		for range 2 { // the call may be repeated
			require.NoError(f, f.changes.RemoveChange(f.ctx, c))
		}
	}
}

// hasUnpublished reports whether the object has an unpublished change from before a time.
func (f *watchedFixture) hasUnpublished(before time.Time) bool {
	f.Helper()
	found, err := f.changes.Unpublished(f.ctx, before, 10_000)
	require.NoError(f, err)
	n := 0
	for _, r := range found {
		if r == f.objectResource() {
			n++
		}
	}
	require.LessOrEqual(f, n, 1)
	return n == 1
}

// createdAt returns a creation of the null version with a sequencer.
func createdAt(sequencer int) domain.ObjectEvent {
	return objecttest.Calls(fmt.Sprintf("[C@%02X]", sequencer))[0][0]
}

const updated, deleted = domain.ResourceUpdated, domain.ResourceDeleted

var objectWatchRules = []struct {
	name string
	test func(f *watchedFixture)
}{
	{"AnObjectThatIsNotWatchedHasNoChanges", func(f *watchedFixture) {
		f.ingestScript("[C@01] [C@02] [D@03]")
		f.wantChanges(0)
		require.Empty(f, f.observed)
	}},
	{"OnlyAnObjectWithACurrentRowIsWatched", func(f *watchedFixture) {
		_, err := f.changes.MarkWatched(f.ctx, f.objectResource(), false)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		f.ingestScript("[C@01] [D@03]")
		_, err = f.changes.MarkWatched(f.ctx, f.objectResource(), false)
		require.Equal(f, domain.NotFound, domain.KindOf(err))
		f.ingestScript("[C@04]")
		require.Zero(f, f.markObject())
		other, err := domain.Kept("document")
		require.NoError(f, err)
		_, err = f.changes.MarkWatched(f.ctx, other, false)
		require.Equal(f, domain.Invalid, domain.KindOf(err))
	}},
	{"EachChangeOfTheCurrentRowIsStoredOnce", func(f *watchedFixture) {
		f.ingestScript("[C@01]")
		require.Zero(f, f.markObject())
		f.ingestScript("[C@02]")
		require.EqualValues(f, 1, f.markObject())
		f.ingestScript("[D@03]")
		f.wantChanges(1, updated, deleted)
		f.ingestScript("[C@04]") // creates the object again, which is not a change for watches
		all := f.wantChanges(1, updated, deleted)
		require.EqualValues(f, 2, f.markObject())
		f.removeChanges(all[0])
		f.wantChanges(2, deleted)
		f.ingestScript("[C@05] [D@06]")
		all = f.wantChanges(2, deleted, updated, deleted)
		f.removeChanges(all...)
		f.wantChanges(0)
	}},
	{"AnEventThatKeepsTheCurrentRowIsNoChange", func(f *watchedFixture) {
		f.ingestScript("[C@01/a] [C@05/b]")
		require.Zero(f, f.markObject())
		f.ingestScript("[C@05/b] [C@01/a] [C@03/c] [D@02/a]") // duplicates, and events of versions that are not current
		f.wantChanges(0)
		require.Empty(f, f.observed)
	}},
	{"ADeleteMarkerIsADeletionAndItsEndAnUpdate", func(f *watchedFixture) {
		f.ingestScript("[C@01/a]")
		f.markObject()
		f.ingestScript("[M@02/m]")
		f.wantChanges(1, deleted)
		f.ingestScript("[D@03/m]") // deletes the delete marker, so the object exists again
		f.wantChanges(1, deleted)
		f.ingestScript("[C@04/b]")
		f.ingestScript("[D@05/b]") // deletes the current version, so the previous version is current
		f.wantChanges(1, deleted, updated, updated)
	}},
	{"OneCallMakesOneChange", func(f *watchedFixture) {
		f.ingestScript("[C@01]")
		f.markObject()
		f.ingestScript("[C@02, D@03, C@04]")
		f.wantChanges(1, updated)
		f.ingestScript("[C@05, D@06]")
		f.wantChanges(1, updated, deleted)
		f.ingestScript("[C@07, D@08]") // one call creates and deletes the object
		f.wantChanges(1, updated, deleted)
	}},
	{"OtherFactsAreAChange", func(f *watchedFixture) {
		f.ingestScript("[C@01/a] [C@02/b]")
		f.markObject()
		amend := func(id domain.ObjectRowID, text string) {
			_, err := f.Amend(f.ctx, f.name, id, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
				facts.Attributes = text
				return facts, nil
			})
			require.NoError(f, err)
		}
		amend(domain.ObjectRowID{}, `{"a":1}`)
		f.wantChanges(1, updated)
		amend(domain.ObjectRowID{}, `{"a":1}`)    // does not change the facts
		amend(f.readHistory()[0].ID(), `{"a":2}`) // changes a row of an older version, which is not current
		f.wantChanges(1, updated)
	}},
	{"AnObjectWithManyRowsKeepsItsMark", func(f *watchedFixture) {
		f.ingestScript("[C@01/v1]")
		f.markObject()
		var want []domain.ChangeEvent
		for i := range 20 {
			f.ingestReports(f.toReports(createdAt(i + 2))...)
			want = append(want, updated)
		}
		f.wantChanges(1, want...)
	}},
	{"ObjectsOfOneCallHaveTheirOwnChanges", func(f *watchedFixture) {
		first, second, third := f.name, f.objectName("key-2"), f.objectName("ke")
		create := func(event string) {
			f.Helper()
			var all []repository.ObjectReport
			for _, name := range []domain.ObjectName{first, second, third} {
				all = append(all, reportsOf(name, objecttest.Calls("[" + event + "]")[0]...)...)
			}
			f.ingestReports(all...)
		}
		create("C@01")
		for _, name := range []domain.ObjectName{first, third} {
			f.name = name
			f.markObject()
		}
		create("C@02")
		create("D@03")
		for _, name := range []domain.ObjectName{first, third} {
			f.name = name
			f.wantChanges(1, updated, deleted)
		}
		f.name = second
		f.wantChanges(0)
	}},
	{"UnpublishedChangesAreFound", func(f *watchedFixture) {
		require.False(f, f.hasUnpublished(time.Now().Add(time.Hour)))
		f.ingestScript("[C@01]")
		f.markObject()
		f.ingestScript("[C@02] [C@03]")
		require.False(f, f.hasUnpublished(time.Now().Add(-repository.MaxClockAhead/2)), "it is young")
		require.True(f, f.hasUnpublished(time.Now().Add(time.Minute)))
		require.True(f, f.hasUnpublished(time.Now().Add(-2*repository.MaxClockAhead)), "a clock was ahead")
		all := f.wantChanges(1, updated, updated)
		f.removeChanges(all[0])
		require.True(f, f.hasUnpublished(time.Now().Add(time.Minute)))
		f.removeChanges(all[1])
		require.False(f, f.hasUnpublished(time.Now().Add(time.Minute)))
	}},
	{"AMarkAppliesToEachLaterChange", func(f *watchedFixture) {
		f.ingestScript("[C@01]")
		var writing sync.WaitGroup
		var marked int64
		for i := range 8 {
			writing.Go(func() {
				results, err := f.Ingest(f.ctx, f.toReports(createdAt(i+2)))
				require.NoError(f, err)
				require.NoError(f, results[0].Err)
			})
		}
		writing.Go(func() {
			version, err := f.changes.MarkWatched(f.ctx, f.objectResource(), false)
			require.NoError(f, err)
			marked = version
		})
		writing.Wait()
		require.Zero(f, marked, "nothing marked it before")
		f.mu.Lock()
		before := int64(len(f.observed))
		f.mu.Unlock()
		f.ingestReports(f.toReports(createdAt(50))...)
		found, err := f.changes.Changes(f.ctx, f.objectResource())
		require.NoError(f, err)
		require.Len(f, found, int(before)+1)
		require.EqualValues(f, len(found), f.markObject())
	}},
}

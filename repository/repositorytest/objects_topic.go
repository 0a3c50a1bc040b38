package repositorytest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// A topicFixture is the environment of a case about the topic of objects.
type topicFixture struct {
	*objectFixture
	watched repository.StoredChanges
	topic   repository.ObjectTopic

	mu       sync.Mutex
	observed []domain.ObjectChange
}

// RunObjectTopic checks an implementation against the contract of repository.ObjectTopic. open returns a store
// and its topic.
func RunObjectTopic(t *testing.T, open func(t *testing.T) (WatchedObjects, repository.ObjectTopic)) {
	for _, r := range objectTopicRules {
		t.Run(r.name, func(t *testing.T) {
			store, topic := open(t)
			f := &topicFixture{watched: store, topic: topic}
			store.Observe(func(domain.Change) {})
			topic.Observe(func(c domain.ObjectChange) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.observed = append(f.observed, c)
			})
			f.objectFixture = newObjectFixture(t, func(*testing.T) repository.Objects { return store })
			r.test(f)
		})
	}
}

// remainingChanges returns the changes of the object that were not removed, from the first to the last.
func (f *topicFixture) remainingChanges() (changes []domain.ObjectChange) {
	f.Helper()
	all, err := f.topic.Unpublished(f.ctx, time.Now().Add(time.Minute), 10_000)
	require.NoError(f, err)
	for _, c := range all {
		if c.Name == f.name {
			changes = append(changes, c)
		}
	}
	return changes
}

// wantChanges requires that the object has exactly these changes, and returns them. Each is an event and
// the sequencer of a row, such as "created 01".
func (f *topicFixture) wantChanges(want ...string) []domain.ObjectChange {
	f.Helper()
	changes := f.remainingChanges()
	var got []string
	for i, c := range changes {
		got = append(got, fmt.Sprint(c.Event, " ", c.Row.Sequencer))
		require.WithinDuration(f, time.Now(), c.At, time.Minute)
		require.GreaterOrEqual(f, c.Version, c.At.UnixMicro())
		if i > 0 {
			require.Greater(f, c.Version, changes[i-1].Version)
		}
	}
	require.Equal(f, want, got)
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Subset(f, f.observed, changes)
	return changes
}

func (f *topicFixture) removeChanges(changes ...domain.ObjectChange) {
	f.Helper()
	for range 2 { // the call may be repeated
		require.NoError(f, f.topic.Remove(f.ctx, changes))
	}
}

var objectTopicRules = []struct {
	name string
	test func(f *topicFixture)
}{
	{"EachChangeOfTheCurrentStateIsStoredOnce", func(f *topicFixture) {
		f.ingestScript("[C@01] [C@02] [D@03] [C@04]")
		f.wantChanges("created 01", "updated 02", "deleted 02", "created 04")
	}},
	{"AnEventThatKeepsTheCurrentStateIsNoChange", func(f *topicFixture) {
		f.ingestScript("[C@01/a] [C@05/b]")
		want := []string{"created 01", "updated 05"}
		f.wantChanges(want...)
		f.ingestScript("[C@05/b] [C@01/a] [C@03/c] [D@02/a]") // duplicates, and events of versions that are not current
		f.wantChanges(want...)
	}},
	{"ADeletionOfAnUnknownObjectIsNoChange", func(f *topicFixture) {
		f.ingestScript("[D@01] [C@01/a, D@02/a]")
		require.Empty(f, f.remainingChanges())
		require.Empty(f, f.observed)
	}},
	{"ADeleteMarkerIsADeletionAndItsEndACreation", func(f *topicFixture) {
		f.ingestScript("[C@01/a] [M@02/m] [D@03/m] [C@04/b] [D@05/b]")
		f.wantChanges("created 01", "deleted 01", "created 01", "updated 04", "updated 01")
	}},
	{"OneCallMakesOneChange", func(f *topicFixture) {
		f.ingestScript("[C@01, D@02, C@03]")
		f.wantChanges("created 03")
		f.ingestScript("[C@04, D@05] [C@06, D@07]")
		f.wantChanges("created 03", "deleted 03")
	}},
	{"OtherFactsAreAChange", func(f *topicFixture) {
		f.ingestScript("[C@01/a] [C@02/b]")
		amend := func(id domain.ObjectRowID, text string) {
			_, err := f.Amend(f.ctx, f.name, id, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
				facts.Attributes = text
				return facts, nil
			})
			require.NoError(f, err)
		}
		amend(domain.ObjectRowID{}, `{"a":1}`)
		changes := f.wantChanges("created 01", "updated 02", "updated 02")
		require.Empty(f, changes[2].Row.Attributes)
		amend(domain.ObjectRowID{}, `{"a":1}`)    // does not change the facts
		amend(f.readHistory()[0].ID(), `{"a":2}`) // changes a row of an older version, which is not current
		f.wantChanges("created 01", "updated 02", "updated 02")
	}},
	{"AChangeHasTheFactsOfItsRow", func(f *topicFixture) {
		e, size := createdAt(1), int64(1)<<62
		e.ObjectFacts = domain.ObjectFacts{Size: &size, ETag: `"e"`, StorageClass: domain.ClassGlacier, Reason: domain.CreatedCopy}
		f.ingestReports(f.toReports(e)...)
		f.ingestScript("[D@02]")
		for _, c := range f.wantChanges("created 01", "deleted 01") {
			require.Equal(f, e, c.Row.ObjectEvent)
		}
	}},
	{"AnObjectThatIsWatchedHasBothChanges", func(f *topicFixture) {
		f.ingestScript("[C@01]")
		r := domain.ObjectResourceOf(f.name)
		_, err := f.watched.MarkWatched(f.ctx, r, false)
		require.NoError(f, err)
		f.ingestScript("[C@02] [D@03] [C@04]")
		f.wantChanges("created 01", "updated 02", "deleted 02", "created 04")
		watched, err := f.watched.Changes(f.ctx, r)
		require.NoError(f, err)
		require.Len(f, watched, 2)
	}},
	{"AnObjectWithManyRowsHasItsChanges", func(f *topicFixture) {
		var want []string
		for i := range 20 {
			f.ingestReports(f.toReports(createdAt(i + 1))...)
			want = append(want, fmt.Sprintf("updated %02X", i+1))
		}
		want[0] = "created 01"
		f.wantChanges(want...)
	}},
	{"ObjectsOfOneCallHaveTheirOwnChanges", func(f *topicFixture) {
		names := []domain.ObjectName{f.name, f.objectName("key-2"), f.objectName("ke")}
		for _, event := range []string{"C@01", "C@02"} {
			var all []repository.ObjectReport
			for _, name := range names {
				all = append(all, reportsOf(name, objecttest.Calls("[" + event + "]")[0]...)...)
			}
			f.ingestReports(all...)
		}
		for _, f.name = range names {
			f.wantChanges("created 01", "updated 02")
		}
	}},
	{"ManyNewObjectsOfOneCallHaveTheirChanges", func(f *topicFixture) {
		var all []repository.ObjectReport
		var names []domain.ObjectName
		for i := range 150 {
			names = append(names, f.objectName(fmt.Sprint("many-", i)))
			all = append(all, reportsOf(names[i], createdAt(1))...)
		}
		f.ingestReports(all...)
		for _, f.name = range names {
			f.wantChanges("created 01")
		}
	}},
	{"PublishedChangesAreRemoved", func(f *topicFixture) {
		f.ingestScript("[C@01] [C@02] [C@03]")
		all := f.wantChanges("created 01", "updated 02", "updated 03")
		f.removeChanges(all[0], all[2])
		f.wantChanges("updated 02")
		f.removeChanges(all...)
		require.Empty(f, f.remainingChanges())
		f.ingestScript("[C@04]")
		f.removeChanges(f.wantChanges("updated 04")...)
		f.removeChanges()
	}},
	{"UnpublishedChangesAreFound", func(f *topicFixture) {
		count := func(before time.Time, limit int) int {
			f.Helper()
			found, err := f.topic.Unpublished(f.ctx, before, limit)
			require.NoError(f, err)
			n := 0
			for _, c := range found {
				if c.Name == f.name {
					n++
				}
			}
			require.LessOrEqual(f, len(found), limit)
			return n
		}
		f.ingestScript("[C@01] [C@02] [C@03]")
		require.Zero(f, count(time.Now().Add(-repository.MaxClockAhead/2), 10_000), "it is young")
		require.Equal(f, 3, count(time.Now().Add(-2*repository.MaxClockAhead), 10_000), "a clock was ahead")
		require.Equal(f, 3, count(time.Now().Add(time.Minute), 10_000))
		require.LessOrEqual(f, count(time.Now().Add(time.Minute), 2), 2)
		f.removeChanges(f.remainingChanges()...)
	}},
	{"WritersThatCompeteStoreOneChangeEach", func(f *topicFixture) {
		var writing sync.WaitGroup
		for i := range 8 {
			writing.Go(func() {
				results, err := f.Ingest(f.ctx, f.toReports(createdAt(i+1)))
				require.NoError(f, err)
				require.NoError(f, results[0].Err)
			})
		}
		writing.Wait()
		changes := f.remainingChanges()
		require.Equal(f, domain.StateCreated, changes[0].Event)
		for i := 1; i < len(changes); i++ { // the number of changes depends on the order of the writers
			require.Equal(f, domain.StateUpdated, changes[i].Event)
			require.Negative(f, domain.CompareObjectRows(changes[i-1].Row, changes[i].Row))
		}
		require.Equal(f, "08", changes[len(changes)-1].Row.Sequencer.String())
	}},
	{"ACallWhoseContextHasEndedFails", func(f *topicFixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		require.ErrorIs(f, f.topic.Remove(ctx, []domain.ObjectChange{{Name: f.name, Version: 1}}), context.Canceled)
		_, err := f.topic.Unpublished(ctx, time.Now(), 1)
		require.ErrorIs(f, err, context.Canceled)
	}},
}

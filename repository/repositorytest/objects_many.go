package repositorytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

var historyRules = []objectRule{
	{"ManyRowsOfOneObjectAreKept", func(f *objectFixture) {
		const n = 150
		rng := rand.New(rand.NewPCG(1, 2))
		var events []domain.ObjectEvent
		for i := range n {
			events = append(events, objecttest.Calls(fmt.Sprintf("[C@%04X+%d]", i, i))[0]...)
		}
		shuffled := slices.Clone(events)
		rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for call := range slices.Chunk(slices.Concat(shuffled, events), 9) {
			f.ingestReports(f.toReports(call...)...)
		}
		rows := f.readHistory()
		require.Len(f, rows, n)
		for i := range rows {
			require.Equal(f, events[i], rows[i].ObjectEvent)
			require.EqualValues(f, 1, rows[i].Duplicates)
		}
	}},
	{"ADeletionOfTheNewestVersionUncoversAnOldOne", func(f *objectFixture) {
		f.ingestScript("[C@0001/old]")
		for i := range 40 {
			f.ingestScript(fmt.Sprintf("[C@%04X/v%d]", 2*i+2, i))
			f.ingestScript(fmt.Sprintf("[D@%04X/v%d]", 2*i+3, i))
			require.Equal(f, "old", f.readObject().Current.Version.String())
		}
		require.Len(f, f.readHistory(), 81)
	}},
	{"NumbersOfGeneratedPlacesGoBeyond255", func(f *objectFixture) {
		const n = 300
		e := objecttest.Calls("[C@-]")[0][0]
		for from := 0; from < n; from += 20 {
			var events []domain.ObjectEvent
			for i := range 20 {
				e.Carrier.Index = from + i
				events = append(events, e)
			}
			f.ingestReports(f.toReports(events...)...)
		}
		for i, r := range f.readHistory() {
			require.EqualValues(f, i+1, r.Number)
		}
		require.EqualValues(f, n, f.readObject().Current.Number)
	}},
}

// listKeys returns the keys of all pages of a range.
func (f *objectFixture) listKeys(r repository.ObjectRange, limit int) (keys []string) {
	f.Helper()
	for r.Bucket = f.bucket; ; {
		page, err := f.List(f.ctx, r, limit)
		require.NoError(f, err)
		require.LessOrEqual(f, len(page.Objects), limit)
		for _, o := range page.Objects {
			require.Equal(f, f.bucket, o.Name.Bucket())
			keys = append(keys, o.Name.Key())
		}
		if !page.More {
			return keys
		}
		require.NotEqual(f, page.After, r.After, "the next page begins further on")
		r.After = page.After
	}
}

var listRules = []objectRule{
	{"ObjectsAreListedInTheOrderOfTheirKeys_PageByPage", func(f *objectFixture) {
		keys := []string{"A", "a", "a b", "a+b", "a/", "a/1", "a/2", "b", strings.Repeat("l", 600), strings.Repeat("l", 1000), "é", "日", "日本", "\U0001F600"}
		require.True(f, slices.IsSorted(keys))
		e := objecttest.Calls("[C@C1]")[0][0]
		for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(keys)) {
			f.ingestReports(reportsOf(f.objectName(keys[i]), e)...)
		}
		for _, limit := range []int{1, 3, len(keys), 100} {
			require.Equal(f, keys, f.listKeys(repository.ObjectRange{}, limit))
			require.Equal(f, keys[2:7], f.listKeys(repository.ObjectRange{Prefix: "a", After: "a"}, limit))
			require.Equal(f, keys[4:7], f.listKeys(repository.ObjectRange{Prefix: "a/"}, limit))
			require.Equal(f, keys[2:6], f.listKeys(repository.ObjectRange{After: "a", UpTo: "a/1"}, limit))
			require.Equal(f, keys[2:6], f.listKeys(repository.ObjectRange{After: "a", UpTo: "a/1\x00"}, limit))
			require.Equal(f, keys[:9], f.listKeys(repository.ObjectRange{UpTo: keys[8]}, limit), "a longer key is behind its prefix")
			require.Empty(f, f.listKeys(repository.ObjectRange{After: "b", UpTo: "b"}, limit))
			require.Equal(f, keys[11:13], f.listKeys(repository.ObjectRange{Prefix: "日"}, limit))
			require.Equal(f, keys[9:10], f.listKeys(repository.ObjectRange{Prefix: keys[8] + "l"}, limit))
			require.Empty(f, f.listKeys(repository.ObjectRange{Prefix: "none"}, limit))
			require.Empty(f, f.listKeys(repository.ObjectRange{After: "\U0001F600"}, limit))
		}
	}},
	{"LongKeysThatDifferAtTheirEndAreListedOnce", func(f *objectFixture) {
		e := objecttest.Calls("[C@C1]")[0][0]
		var keys []string
		for i := range 10 {
			keys = append(keys, strings.Repeat("k", 1000)+fmt.Sprint(i))
			f.ingestReports(reportsOf(f.objectName(keys[i]), e)...)
		}
		f.ingestReports(reportsOf(f.objectName(strings.Repeat("k", 700)), e)...)
		for _, limit := range []int{1, 3, 100} {
			require.ElementsMatch(f, keys, f.listKeys(repository.ObjectRange{Prefix: keys[0][:1000]}, limit))
		}
	}},
	{"ABucketWithoutObjectsIsEmpty", func(f *objectFixture) {
		require.Empty(f, f.listKeys(repository.ObjectRange{}, 10))
	}},
	{"OnlyObjectsWithACurrentRowAreListedIfThatIsWanted", func(f *objectFixture) {
		for i := range 10 {
			f.name = f.objectName(fmt.Sprint("key", i))
			f.ingestScript("[C@C1]")
			if i%3 != 0 {
				f.ingestScript("[D@D1]")
			}
		}
		require.Len(f, f.listKeys(repository.ObjectRange{}, 4), 10)
		require.Equal(f, []string{"key0", "key3", "key6", "key9"}, f.listKeys(repository.ObjectRange{OnlyCurrent: true}, 3))
	}},
}

// runTogether calls do for each of n callers concurrently.
func (f *objectFixture) runTogether(n int, do func(caller int)) {
	var g sync.WaitGroup
	for i := range n {
		g.Go(func() { do(i) })
	}
	g.Wait()
}

// deliverInOrder ingests events one by one in the given order. It reports a failure without ending the
// test.
func (f *objectFixture) deliverInOrder(events []domain.ObjectEvent, order []int) {
	for _, i := range order {
		results, err := f.Ingest(f.ctx, f.toReports(events[i]))
		if err != nil || results[0].Err != nil {
			f.Error(err, results)
			return
		}
	}
}

var objectRaceRules = []objectRule{
	{"TwoIngestersOfTheSameEventsAgreeWithTheTables", func(f *objectFixture) {
		rng := rand.New(rand.NewPCG(5, 6))
		for _, table := range objecttest.NativeTables {
			var events []domain.ObjectEvent
			ids := make(map[domain.ObjectRowID]bool)
			for _, e := range slices.Concat(objecttest.Calls(table.Script)...) {
				if !ids[e.ID()] {
					events, ids[e.ID()] = append(events, e), true
				}
			}
			for try := range 5 {
				f.name = f.objectName(fmt.Sprint(table.Name, try))
				orders := [][]int{rng.Perm(len(events)), rng.Perm(len(events))}
				f.runTogether(len(orders), func(i int) { f.deliverInOrder(events, orders[i]) })
				rows := f.readHistory()
				for i := range rows {
					require.EqualValues(f, 1, rows[i].Duplicates, "each event came twice")
				}
				got := objecttest.Describe(rows, f.readObject().Current)
				f.name = f.objectName(fmt.Sprint(table.Name, try, " in order"))
				f.ingestReports(f.toReports(events...)...)
				f.ingestReports(f.toReports(events...)...)
				require.Equal(f, f.describeRows(), got, "%s, orders %v", table.Name, orders)
			}
		}
	}},
	{"ManyIngestersOfManyObjectsStoreEachEventOnce", func(f *objectFixture) {
		const callers, objects, each = 6, 12, 8
		f.runTogether(callers, func(caller int) {
			for n := range each {
				var reports []repository.ObjectReport
				for i := range objects {
					e := objecttest.Calls(fmt.Sprintf("[C@%04X]", 1+n*callers+caller))[0][0]
					reports = append(reports, reportsOf(f.objectName(fmt.Sprint("key", i)), e)...)
				}
				results, err := f.Ingest(f.ctx, reports)
				if err != nil {
					f.Error(err)
					return
				}
				for _, r := range results {
					if r.Err != nil || r.Outcome != domain.ObjectStored {
						f.Error(r.Outcome, r.Err)
					}
				}
			}
		})
		for i := range objects {
			f.name = f.objectName(fmt.Sprint("key", i))
			require.Len(f, f.readHistory(), callers*each)
			require.Equal(f, fmt.Sprintf("%04X", callers*each), f.readObject().Current.SequencerText())
			require.Zero(f, f.readObject().Duplicates)
		}
	}},
}

// RandomObjects ingests n random histories of buckets, each event twice and in any order. It requires
// that the current state of the objects equals that of the bucket.
func RandomObjects(t *testing.T, open func(t *testing.T) repository.Objects, n uint64) {
	t.Run("Random", func(t *testing.T) {
		f := newObjectFixture(t, open)
		for seed := range n {
			rng := rand.New(rand.NewPCG(seed, seed))
			b := objecttest.RandomBucket(rng, 40, seed%2 == 0, time.Millisecond)
			if len(b.Events) == 0 {
				continue
			}
			f.name = f.objectName(fmt.Sprint("key", seed))
			for range 2 {
				order := rng.Perm(len(b.Events))
				for len(order) > 0 {
					size := min(1+rng.IntN(5), len(order))
					var call []domain.ObjectEvent
					for _, i := range order[:size] {
						call = append(call, b.Events[i])
					}
					f.ingestReports(f.toReports(call...)...)
					order = order[size:]
				}
			}
			rows, got := f.readHistory(), ""
			require.Len(t, rows, len(b.Events), "seed %d", seed)
			for i := range rows {
				require.EqualValues(t, 1, rows[i].Duplicates, "seed %d", seed)
			}
			if c := f.readObject().Current; c != nil {
				got = c.ETag
			}
			require.Equal(t, b.Current(), got, "seed %d", seed)
		}
	})
}

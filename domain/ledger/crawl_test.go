package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

func sized(n int64) domain.ObjectFacts {
	return domain.ObjectFacts{
		Size: &n, ETag: "e", StorageClass: domain.ClassStandard, LastModified: objecttest.FirstMoment, SHA256: "sha",
		ArchiveStatus: "ARCHIVE_ACCESS", IngestID: "ingest", Attributes: `{"a":1}`,
	}
}

func TestCrawlOfUnchangedObjectsWritesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 25 {
			w.setListed(fmt.Sprint("key", i), repository.SourceObject{ObjectFacts: sized(int64(i))})
		}
		w.page = 4
		require.Equal(t, domain.JobCounts{Seen: 25, Created: 25}, w.completeCrawl())
		before := w.state()
		require.Equal(t, domain.JobCounts{Seen: 25, Unchanged: 25}, w.completeCrawl())
		require.Equal(t, before, w.state())
		require.Equal(t, "C@0-01+", w.describe("key7"))
		o, err := w.objects.Object(w.Context(), w.name("key7"))
		require.NoError(t, err)
		want := sized(7)
		want.ETag, want.Reason = `"e"`, domain.Crawl
		require.Equal(t, want, o.Current.ObjectFacts)
	})
}

// If any value in the listing differs from the current row, a crawl adds a row (case FM-76 of the
// original system).
func TestCrawlAddsARowForEachFactThatDiffers(t *testing.T) {
	for name, change := range map[string]func(*domain.ObjectFacts){
		"size":           func(f *domain.ObjectFacts) { f.Size = new(int64) },
		"eTag":           func(f *domain.ObjectFacts) { f.ETag = "another" },
		"sha256":         func(f *domain.ObjectFacts) { f.SHA256 = "another" },
		"storage class":  func(f *domain.ObjectFacts) { f.StorageClass = domain.ClassGlacier },
		"last modified":  func(f *domain.ObjectFacts) { f.LastModified = f.LastModified.Add(time.Second) },
		"archive status": func(f *domain.ObjectFacts) { f.ArchiveStatus = "DEEP_ARCHIVE_ACCESS" },
		"ingest id":      func(f *domain.ObjectFacts) { f.IngestID = "another" },
		"attributes":     func(f *domain.ObjectFacts) { f.Attributes = `{"a":2}` },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				facts := sized(1)
				w.setListed("key", repository.SourceObject{ObjectFacts: facts})
				w.completeCrawl()
				<-time.After(time.Second)
				change(&facts)
				w.setListed("key", repository.SourceObject{ObjectFacts: facts})
				require.EqualValues(t, 1, w.completeCrawl().Created)
				require.Equal(t, "C@0-01· C@0-02+", w.describe("key"))
				require.EqualValues(t, 1, w.completeCrawl().Unchanged)
				require.Equal(t, "C@0-01· C@0-02+", w.describe("key"))
			})
		})
	}
	for name, change := range map[string]func(*repository.SourceObject){
		"the reason alone is no difference": func(o *repository.SourceObject) { o.Reason = domain.CrawlRestored },
		"the listing may know less":         func(o *repository.SourceObject) { o.ObjectFacts = domain.ObjectFacts{ETag: "e"} },
		"milliseconds are no difference":    func(o *repository.SourceObject) { o.LastModified = o.LastModified.Add(123 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				o := repository.SourceObject{ObjectFacts: sized(1)}
				w.setListed("key", o)
				w.completeCrawl()
				change(&o)
				w.setListed("key", o)
				require.EqualValues(t, 1, w.completeCrawl().Unchanged)
				require.Equal(t, "C@0-01+", w.describe("key"))
			})
		})
	}
}

// A store's event contains less metadata than a listing. If the content is the same and can be read
// immediately, a crawl does not treat the additional metadata of the listing as a change.
func TestCrawlAddsNoRowForAFactThatNoEventHas(t *testing.T) {
	reported := script("[C@C1]")[0]
	reported.Size, reported.ETag = new(int64), `"e"`
	facts := domain.ObjectFacts{Size: new(int64), ETag: "e", StorageClass: domain.ClassStandard, LastModified: objecttest.FirstMoment}
	for name, tc := range map[string]struct {
		change func(reported *domain.ObjectEvent, listed *domain.ObjectFacts)
		want   string
	}{
		"time and storage class":        {func(*domain.ObjectEvent, *domain.ObjectFacts) {}, "C@C1+"},
		"size":                          {func(r *domain.ObjectEvent, _ *domain.ObjectFacts) { r.Size = nil }, "C@C1+"},
		"digest, ingest id, attributes": {func(_ *domain.ObjectEvent, l *domain.ObjectFacts) { *l = sized(0); l.ArchiveStatus = "" }, "C@C1+"},
		"another ETag":                  {func(_ *domain.ObjectEvent, l *domain.ObjectFacts) { l.ETag = "another" }, "C@C1· C@C1-01+"},
		"no ETag in the event":          {func(r *domain.ObjectEvent, _ *domain.ObjectFacts) { r.ETag = "" }, "C@C1· C@C1-01+"},
		"no ETag in the listing":        {func(_ *domain.ObjectEvent, l *domain.ObjectFacts) { l.ETag = "" }, "C@C1· C@C1-01+"},
		"an archived content":           {func(_ *domain.ObjectEvent, l *domain.ObjectFacts) { l.StorageClass = domain.ClassGlacier }, "C@C1· C@C1-01+"},
		"an archive status":             {func(_ *domain.ObjectEvent, l *domain.ObjectFacts) { l.ArchiveStatus = "ARCHIVE_ACCESS" }, "C@C1· C@C1-01+"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				event, listed := reported, facts
				tc.change(&event, &listed)
				w.report("key", event)
				w.setListed("key", repository.SourceObject{ObjectFacts: listed})
				w.completeCrawl()
				require.Equal(t, tc.want, w.describe("key"))
				require.Equal(t, domain.JobCounts{Seen: 1, Unchanged: 1}, w.completeCrawl())
			})
		})
	}
}

func TestCrawlKeepsKnownFactsOfTheSameContent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setListed("key", repository.SourceObject{ObjectFacts: sized(1)})
		w.completeCrawl()
		<-time.After(time.Second)
		w.setListed("key", repository.SourceObject{ObjectFacts: domain.ObjectFacts{ETag: "e", StorageClass: domain.ClassGlacier}})
		w.completeCrawl()
		o, err := w.objects.Object(w.Context(), w.name("key"))
		require.NoError(t, err)
		require.Equal(t, domain.ClassGlacier, o.Current.StorageClass)
		require.JSONEq(t, `{"a":1}`, o.Current.Attributes)
		require.Equal(t, "sha", o.Current.SHA256)
		<-time.After(time.Second)
		w.setListed("key", repository.SourceObject{ObjectFacts: domain.ObjectFacts{ETag: "another content"}})
		w.completeCrawl()
		o, err = w.objects.Object(w.Context(), w.name("key"))
		require.NoError(t, err)
		require.Empty(t, o.Current.Attributes)
	})
}

// A crawl deletes the objects that the listing does not contain (case FM-77 of the original
// system).
func TestCrawlDeletesObjectsThatTheListingLacks(t *testing.T) {
	for _, page := range []int{1, 2, 100} {
		inWorld(t, func(w *world) {
			w.page = page
			for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
				w.report(key, script("[C@C1]")...)
			}
			w.report("dead", script("[C@C1, D@D1]")...)
			for _, key := range []string{"b", "c", "e"} {
				w.setListed(key, repository.SourceObject{})
			}
			require.Equal(t, domain.JobCounts{Seen: 3, Deleted: 3, Unchanged: 3}, w.completeCrawl())
			for _, key := range []string{"a", "d", "f"} {
				require.Equal(t, "C@C1· D@C1-01·", w.describe(key))
			}
			require.Equal(t, "C@C1+", w.describe("b"))
			require.Equal(t, "C@C1· D@D1·", w.describe("dead"))
			require.Equal(t, domain.JobCounts{Seen: 3, Unchanged: 3}, w.completeCrawl())
		})
	}
}

func TestCrawlIgnoresObjectsWithoutItsPrefix(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, key := range []string{"a", "b/1", "b/2", "c"} {
			w.report(key, script("[C@C1]")...)
		}
		w.setListed("b/2", repository.SourceObject{})
		job := w.crawl("b/")
		require.Equal(t, domain.JobCounts{Seen: 1, Deleted: 1, Unchanged: 1}, job.Counts)
		require.Equal(t, "a: C@C1+\nb/1: C@C1· D@C1-01·\nb/2: C@C1+\nc: C@C1+\n", w.state())
	})
}

// The version in a listing is the latest version of its object, so the crawl makes it current.
func TestCrawlMakesTheListedVersionCurrent(t *testing.T) {
	latest := func(v string) *repository.SourceObject { return &repository.SourceObject{Version: version(v)} }
	for _, tc := range []struct {
		name, script string
		listed       *repository.SourceObject
		want         string
	}{
		{"the known one", "[C@C1/1, C@C2/2]", latest("2"), "C@C1/1· C@C2/2+"},
		{"a newer one was deleted", "[C@C1/1, C@C2/2]", latest("1"), "C@C1/1· C@C2/2· D@C2-02/2· C@C2-01/1+"},
		{"a marker was deleted", "[C@C1/1, M@D1/2]", latest("1"), "C@C1/1· M@D1/2· D@D1-02/2· C@D1-01/1+"},
		{"one of which no event has come", "[C@C1/1, C@C2/2]", latest("3"), "C@C1/1· C@C2/2· C@C2-01/3+"},
		{"one of which no event has come, over a marker", "[C@C1/1, M@D1/2]", latest("3"), "C@C1/1· M@D1/2· C@D1-01/3+"},
		{"a marker was made", "[C@C1/1, C@C2/2]", &repository.SourceObject{Version: version("3"), Marker: true}, "C@C1/1· C@C2/2· M@C2-01/3·"},
		{"a marker of what is deleted says nothing", "[C@C1, D@D1]", &repository.SourceObject{Version: version("3"), Marker: true}, "C@C1· D@D1·"},
		{"no version", "[C@C1/1, C@C2/2, M@D2/3, D@D2F/3]", nil, "C@C1/1· D@C1-02/1· C@C2/2· D@C2-01/2· M@D2/3· D@D2F/3·"},
		{"it was deleted, and made again", "[C@C1, D@D1]", latest(""), "C@C1· D@D1· C@D1-01+"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.report("key", script(tc.script)...)
				if tc.listed != nil {
					w.setListed("key", *tc.listed)
				}
				w.completeCrawl()
				require.Equal(t, tc.want, w.describe("key"))
				counts := w.completeCrawl()
				require.Zero(t, counts.Created+counts.Deleted)
				require.Equal(t, tc.want, w.describe("key"))
			})
		})
	}
}

// If a crawl finds an object, its row becomes current, whichever events arrived before (case FM-79
// of the original system). The test has one key for each subset of twelve events.
func TestCrawlThatFindsAnObjectMakesItCurrent(t *testing.T) {
	kinds := make([]domain.ObjectEvent, 0, 12)
	for _, facts := range []domain.ObjectFacts{
		{Reason: domain.CreatedPut},
		{Reason: domain.CreatedPut, StorageClass: domain.ClassStandard},
		{Reason: domain.CreatedPut, StorageClass: domain.ClassStandard, IngestID: "id"},
	} {
		for _, e := range script("[C@C1, D@D1, C@-, D@-]") {
			if !e.Sequencer.IsNull() { // give each event a different sequencer
				s, err := domain.ParseSequencer(domain.HexSequencer, e.Sequencer.String()+fmt.Sprint(len(kinds)))
				require.NoError(t, err)
				e.Sequencer = s
			}
			e.ObjectFacts = facts
			kinds = append(kinds, e)
		}
	}
	require.Len(t, kinds, 12)
	for _, v := range []string{"", "V"} {
		inWorld(t, func(w *world) {
			key := func(subset uint) string { return fmt.Sprintf("%04d", subset) }
			listed := repository.SourceObject{Version: version(v), ObjectFacts: domain.ObjectFacts{ETag: "crawl", StorageClass: domain.ClassGlacier}}
			for subset := range uint(1 << len(kinds)) {
				for rest := subset; rest > 0; rest &= rest - 1 {
					e := kinds[bits.TrailingZeros(rest)]
					e.Version = version(v)
					w.report(key(subset), e)
				}
				w.setListed(key(subset), listed)
			}
			require.EqualValues(t, 1<<len(kinds), w.completeCrawl().Created)
			for subset := range uint(1 << len(kinds)) {
				o, err := w.objects.Object(w.Context(), w.name(key(subset)))
				require.NoError(t, err)
				require.NotNil(t, o.Current, "subset %b", subset)
				require.Equal(t, domain.ObjectFacts{ETag: `"crawl"`, StorageClass: domain.ClassGlacier, Reason: domain.Crawl}, o.Current.ObjectFacts)
			}
		})
	}
}

// A bucket has at most one running crawl (case FM-80 of the original system).
func TestABucketHasOneCrawl(t *testing.T) {
	inWorld(t, func(w *world) {
		node := w.newNode()
		first, err := node.StartCrawl(w.Context(), bucket, "")
		require.NoError(t, err)
		_, err = node.StartCrawl(w.Context(), bucket, "")
		require.Equal(t, &repository.JobRunsError{ID: first.ID, Bucket: bucket}, err)
		other, err := node.StartCrawl(w.Context(), "another", "")
		require.NoError(t, err)
		defer w.runNode(w.Context(), node)()
		require.Equal(t, domain.JobCompleted, w.waitForEnd(node, first).State)
		require.Equal(t, domain.JobCompleted, w.waitForEnd(node, other).State)
		_, err = node.StartCrawl(w.Context(), bucket, "")
		require.NoError(t, err)
	})
}

func TestCrawlIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		_, err := w.newNode().StartCrawl(w.Context(), "unknown", "")
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		_, err = w.newNode().StartCrawl(w.Context(), "", "")
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		_, err = w.newNode().StartCrawl(w.Context(), bucket, "\xff")
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		w.ports.Source = nil
		_, err = w.newNode().StartCrawl(w.Context(), bucket, "")
		require.ErrorIs(t, err, repository.ErrNoStore)
	})
}

// storeClocks contains store clocks that differ from the hub's clock.
var storeClocks = map[string]func() time.Time{
	"the clock of the hub":  time.Now,
	"in whole seconds":      func() time.Time { return time.Now().Truncate(time.Second) },
	"behind, whole seconds": func() time.Time { return time.Now().Add(-30 * time.Second).Truncate(time.Second) },
	"behind by the margin":  func() time.Time { return time.Now().Add(-domain.ClockMargin) },
}

// If the times of a bucket's events come from the hub's clock, a crawl needs no margin. So it
// detects the deletion of an object that was stored immediately before the crawl.
func TestCrawlOfABucketWithTheClockOfTheHub_FindsRecentDeletions(t *testing.T) {
	for hasClock, want := range map[bool]string{true: "C@C1· D@C1-01·", false: "C@C1+"} {
		inWorld(t, func(w *world) {
			e := script("[C@C1]")[0]
			e.Time = time.Now()
			w.report("gone", e)
			<-time.After(time.Second)
			w.hasClock = hasClock
			w.completeCrawl()
			require.Equal(w, want, w.describe("gone"))
		})
	}
}

// A change after a page was requested is later than the events of the crawl, even if the listing
// already includes the change.
func TestCrawl_UsesTheTimeOfItsRequest(t *testing.T) {
	for name, clock := range storeClocks {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				<-time.After(300 * time.Millisecond)
				now := func(text string) domain.ObjectEvent {
					e := script(text)[0]
					e.Time = clock()
					return e
				}
				w.report("made again", script("[C@C1, D@D1]")...)
				w.report("deleted", script("[C@C1]")...)
				w.setListed("deleted", repository.SourceObject{ObjectFacts: sized(1)})
				w.setListed("last", repository.SourceObject{})
				w.report("last", script("[C@C1]")...)
				calls := 0
				w.source.BeforeList = func(string) error {
					if calls++; calls == 2 { // the first call is that of StartCrawl
						<-time.After(500 * time.Millisecond)
						w.report("made again", now("[C@C2]"))
						w.report("new", now("[C@C2]"))
						w.report("deleted", now("[D@D2]"))
						<-time.After(time.Second)
					}
					return nil
				}
				w.completeCrawl()
				require.Equal(t, "C@C1+", w.describe("last"))
				require.Equal(t, "C@C1· D@D1· C@C2+", w.describe("made again"))
				require.Equal(t, "C@C2+", w.describe("new"))
				require.Equal(t, "C@C1· D@D2·", w.describe("deleted"))
			})
		})
	}
}

func TestCrawl_IsEarlierThanLaterEvents(t *testing.T) {
	for name, clock := range storeClocks {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				<-time.After(300 * time.Millisecond)
				w.report("made again", script("[C@C1]")...)
				w.report("deleted", script("[C@C1, D@D1]")...)
				w.setListed("deleted", repository.SourceObject{ObjectFacts: sized(1)})
				require.Equal(t, domain.JobCounts{Seen: 1, Created: 1, Deleted: 1}, w.completeCrawl())
				<-time.After(500 * time.Millisecond)
				created, deleted := script("[C@C2]")[0], script("[D@D2]")[0]
				created.Time, deleted.Time = clock(), clock()
				w.report("made again", created)
				w.report("deleted", deleted)
				require.Equal(t, "C@C1· D@C1-01· C@C2+", w.describe("made again"))
				require.Equal(t, "C@C1· D@D1· C@D1-01· D@D2·", w.describe("deleted"))
			})
		})
	}
}

// A crawl does not report changes that happened less than domain.ClockMargin before its request.
// The store's event, or the next crawl, reports them.
func TestCrawlLeavesRecentChangesToTheirEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		created := script("[C@C1]")[0]
		created.Time = time.Now()
		w.report("key", created)
		<-time.After(domain.ClockMargin - time.Second)
		w.completeCrawl()
		require.Equal(t, "C@C1+", w.describe("key"))
		<-time.After(time.Second)
		w.completeCrawl()
		require.Equal(t, "C@C1· D@C1-01·", w.describe("key"))
	})
}

// A badListing is a Source that returns prepared pages, by their cursors.
type badListing struct {
	repository.Source
	pages map[string]repository.SourcePage
}

func (b *badListing) List(_ context.Context, _, _, cursor string, _ int) (repository.SourcePage, error) {
	return b.pages[cursor], nil
}

func keysOf(keys string, cursor string) repository.SourcePage {
	page := repository.SourcePage{Cursor: cursor}
	for key := range strings.FieldsSeq(keys) {
		page.Objects = append(page.Objects, repository.SourceObject{Key: key})
	}
	return page
}

func TestCrawlOfAListingOutOfOrderFailsAndDeletesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		pages  map[string]repository.SourcePage
		prefix string
		report string
	}{
		"keys that do not ascend": {map[string]repository.SourcePage{"": keysOf("a c b", "")}, "", `key "b" comes after key "c"`},
		"a key twice":             {map[string]repository.SourcePage{"": keysOf("a b b", "")}, "", `key "b" comes after key "b"`},
		"a page that is repeated": {map[string]repository.SourcePage{"": keysOf("a c", "1"), "1": keysOf("a c", "2"), "2": {}}, "", `key "a" comes after key "c"`},
		"the same cursor":         {map[string]repository.SourcePage{"": keysOf("a c", "1"), "1": keysOf("x", "1")}, "", `it repeats the page behind key "c"`},
		"a page before the last":  {map[string]repository.SourcePage{"": keysOf("a c", "1"), "1": keysOf("b", "")}, "", `key "b" comes after key "c"`},
		"another prefix":          {map[string]repository.SourcePage{"": keysOf("aa ab b", "")}, "a", `key "b" is without prefix "a"`},
		"empty pages for ever":    {map[string]repository.SourcePage{"": keysOf("a", "1"), "1": keysOf("", "2"), "2": keysOf("", "1")}, "", "1000 pages in a row are empty"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				for _, key := range []string{"a", "b", "bb", "d"} {
					w.report(key, script("[C@C1]")...)
				}
				before := w.state()
				w.ports.Source = &badListing{pages: tc.pages}
				job := w.crawl(tc.prefix)
				require.Equal(t, domain.JobFailed, job.State)
				require.Contains(t, job.Report, "out of order")
				require.Contains(t, job.Report, tc.report)
				require.Equal(t, before, w.state())
				w.ports.Source = w.source
				w.completeCrawl()
			})
		})
	}
}

func TestCrawlRepeatsAStepThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.page = 1
		for _, key := range []string{"a", "b", "c"} {
			w.setListed(key, repository.SourceObject{})
		}
		failures := 0
		w.source.BeforeList = func(cursor string) error {
			if cursor == "b" && failures < 5 {
				failures++
				return domain.Errorf(domain.Unavailable, "the store does not answer")
			}
			return nil
		}
		require.Equal(t, domain.JobCounts{Seen: 3, Created: 3}, w.completeCrawl())
		require.Equal(t, 5, failures)
		failures = -1000
		job := w.crawl("")
		require.Equal(t, domain.JobFailed, job.State)
		require.Equal(t, "the store does not answer", job.Report)
	})
}

func TestCrawlThatIsStoppedStoresNoMore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.page = 1
		for _, key := range []string{"a", "b", "c", "d"} {
			w.setListed(key, repository.SourceObject{})
		}
		node := w.newNode()
		var id domain.JobID
		w.source.BeforeList = func(cursor string) error {
			if cursor != "c" {
				return nil
			}
			_, err := node.StopJob(w.Context(), id)
			return err
		}
		job, err := node.StartCrawl(w.Context(), bucket, "")
		require.NoError(t, err)
		id = job.ID
		defer w.runNode(w.Context(), node)()
		require.Equal(t, domain.JobStopped, w.waitForEnd(node, job).State)
		w.completeCrawl()
		require.Len(t, strings.Split(strings.TrimSpace(w.state()), "\n"), 4)
	})
}

var errCrash = errors.New("the node has crashed")

// A crasher ends a node at the n-th call of Ingest, Amend or SaveJob. If after is set, that call is
// executed before the node ends.
type crasher struct {
	repository.Objects
	repository.Jobs
	mu    sync.Mutex
	n     int
	after bool
	crash context.CancelFunc
}

func (c *crasher) call(do func() error) error {
	c.mu.Lock()
	c.n--
	left := c.n
	c.mu.Unlock()
	if left > 0 {
		return do()
	}
	if left == 0 && c.after {
		if err := do(); err != nil {
			return err
		}
	}
	c.crash()
	return errCrash
}

func (c *crasher) Ingest(ctx context.Context, reports []repository.ObjectReport) (results []repository.ObjectResult, err error) {
	err = c.call(func() (err error) {
		results, err = c.Objects.Ingest(ctx, reports)
		return err
	})
	return results, err
}

func (c *crasher) Amend(ctx context.Context, name domain.ObjectName, id domain.ObjectRowID, change func(domain.ObjectFacts) (domain.ObjectFacts, error)) (row domain.ObjectRow, err error) {
	err = c.call(func() (err error) {
		row, err = c.Objects.Amend(ctx, name, id, change)
		return err
	})
	return row, err
}

func (c *crasher) SaveJob(ctx context.Context, job *domain.Job) error {
	return c.call(func() error { return c.Jobs.SaveJob(ctx, job) })
}

func TestCrawlIsResumedByAnotherNode_AndAddsNothingTwice(t *testing.T) {
	prepare := func(w *world) {
		w.page = 3
		for i := range 10 {
			key := fmt.Sprint("key", i)
			if i%3 > 0 {
				w.report(key, script("[C@C1]")...)
			}
			if i%4 > 0 {
				w.setListed(key, repository.SourceObject{ObjectFacts: domain.ObjectFacts{ETag: "e"}})
			}
		}
	}
	want := ""
	inWorld(t, func(w *world) {
		prepare(w)
		w.completeCrawl()
		want = w.state()
	})
	for _, after := range []bool{false, true} {
		for n, crashed := 1, true; crashed; n++ {
			inWorld(t, func(w *world) {
				prepare(w)
				dying, crash := context.WithCancel(w.Context())
				c := &crasher{Objects: w.objects, Jobs: w.jobs, n: n, after: after, crash: crash}
				healthy := w.newNode()
				w.ports.Objects, w.ports.Jobs = c, c
				node := w.newNode()
				job, err := node.StartCrawl(w.Context(), bucket, "")
				require.NoError(t, err)
				stopFirst := w.runNode(dying, node)
				<-time.After(time.Second) // takes no real time in the synctest bubble
				defer w.runNode(w.Context(), healthy)()
				ended := w.waitForEnd(healthy, job)
				stopFirst()
				crash()
				crashed = c.n <= 0
				require.Equal(t, domain.JobCompleted, ended.State, ended.Report)
				require.EqualValues(t, 7, ended.Counts.Seen)
				require.Equal(t, want, w.state(), "call %d", n)
				if crashed {
					require.Less(t, ended.Ended.Sub(ended.Started), 2*time.Minute)
				}
			})
		}
	}
}

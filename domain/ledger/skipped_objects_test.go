package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A brokenObjects fails to read certain objects, and fails to store the events of certain objects.
type brokenObjects struct {
	repository.Objects
	unreadable map[string]bool
	unstorable map[string]error
}

var errDamaged = domain.Errorf(domain.Damaged, "the document contradicts itself")

func (b *brokenObjects) Object(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	if b.unreadable[name.Key()] {
		return domain.Object{}, errDamaged
	}
	return b.Objects.Object(ctx, name)
}

func (b *brokenObjects) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	page, err := b.Objects.List(ctx, r, limit)
	all := page.Objects
	page.Objects = nil
	for _, o := range all {
		if key := o.Name.Key(); b.unreadable[key] {
			page.Damaged = append(page.Damaged, repository.DamagedObject{Key: key, Err: errDamaged, Position: len(page.Objects)})
			continue
		}
		page.Objects = append(page.Objects, o)
	}
	return page, err
}

func (b *brokenObjects) Ingest(ctx context.Context, reports []repository.ObjectReport) ([]repository.ObjectResult, error) {
	results := make([]repository.ObjectResult, len(reports))
	for i := range reports {
		if err := b.unstorable[reports[i].Name.Key()]; err != nil {
			results[i].Err = err
			continue
		}
		one, err := b.Objects.Ingest(ctx, reports[i:i+1])
		if err != nil {
			return nil, err
		}
		results[i] = one[0]
	}
	return results, nil
}

func reasonsOf(job domain.Job) map[string]string {
	reasons := make(map[string]string)
	for _, f := range job.Failures {
		reasons[f.Object] += f.Reason
	}
	return reasons
}

var errNoRoom = domain.Errorf(domain.Unavailable, "shard 3: %w", repository.ErrPartitionFull)

// If a job cannot read an object or store its events, the job skips this object and records the
// reason. It processes all other objects.
func TestJobs_SkipObjectsThatCannotBeReadOrStored(t *testing.T) {
	unstorable := map[string]error{"full": errNoRoom, "too large": fmt.Errorf("the batch is refused"), "full and gone": errNoRoom}
	prepare := func(w *world) {
		w.page = 2
		for _, key := range []string{"known", "gone", "full and gone", "unreadable", "unreadable and gone"} {
			w.report(key, script("[C@C1]")...)
		}
		for _, key := range []string{"full", "known", "new", "too large", "unreadable", "z"} {
			w.setListed(key, repository.SourceObject{ObjectFacts: domain.ObjectFacts{ETag: "e"}})
		}
		w.ports.Objects = &brokenObjects{w.objects, map[string]bool{"unreadable": true, "unreadable and gone": true}, unstorable}
	}
	t.Run("crawl", func(t *testing.T) {
		inWorld(t, func(w *world) {
			prepare(w)
			job := w.crawl("")
			require.Equal(t, domain.JobCompleted, job.State, job.Report)
			require.Equal(t, domain.JobCounts{Seen: 6, Created: 3, Deleted: 1, Refused: 5}, job.Counts)
			require.Equal(t, map[string]string{
				"full": errNoRoom.Error(), "full and gone": errNoRoom.Error(), "too large": "the batch is refused",
				"unreadable": errDamaged.Error(), "unreadable and gone": errDamaged.Error(),
			}, reasonsOf(job))
			require.Equal(t, "C@C1· D@C1-01·", w.describe("gone"))
			require.Equal(t, "C@0-01+", w.describe("z"))
		})
	})
	t.Run("inventory", func(t *testing.T) {
		inWorld(t, func(w *world) {
			prepare(w)
			m := w.inventoryOf([]byte(`"bucket","full"` + "\n" + `"bucket","new"` + "\n" + `"bucket","too large"` + "\n" + `"bucket","unreadable"` + "\n" + `"bucket","z"`))
			job := w.importManifest(m)
			require.Equal(t, domain.JobCompleted, job.State, job.Report)
			require.Equal(t, domain.JobCounts{Seen: 5, Created: 2, Refused: 3}, job.Counts)
			require.Equal(t, map[string]string{"full": errNoRoom.Error(), "too large": "the batch is refused", "unreadable": errDamaged.Error()}, reasonsOf(job))
		})
	})
	t.Run("patch", func(t *testing.T) {
		inWorld(t, func(w *world) {
			prepare(w)
			node := w.newNode()
			defer w.runNode(w.Context(), node)()
			job, err := node.StartPatch(w.Context(), map[string][]string{"key": {"*"}}, []byte(`[{"op":"add","path":"/a","value":1}]`))
			require.NoError(t, err)
			job = w.waitForEnd(node, job)
			require.Equal(t, domain.JobCompleted, job.State, job.Report)
			require.Equal(t, domain.JobCounts{Seen: 3, Changed: 3, Refused: 2}, job.Counts)
		})
	})
}

// If an inventory is older than the retention, its job stores no events and reports the reason.
func TestInventory_CountsEventsThatAreTooOld(t *testing.T) {
	inWorld(t, func(w *world) {
		w.ports.Objects = memory.NewObjectsWithRetention(repository.ObjectKeeping{Retention: domain.ObjectRetention(time.Hour), Clock: time.Now})
		<-time.After(100 * 24 * time.Hour)
		job := w.importManifest(w.inventoryOf([]byte(`"bucket","a"` + "\n" + `"bucket","b"`)))
		require.Equal(t, domain.JobCompleted, job.State, job.Report)
		require.Equal(t, domain.JobCounts{Seen: 2, Refused: 2}, job.Counts)
		const reason = "what was found is older than objects.retention"
		require.Equal(t, map[string]string{"a": reason, "b": reason}, reasonsOf(job))
	})
}

// For any page size, a list contains all readable objects, and reports each damaged object once.
func TestList_LeavesOutDamagedObjects(t *testing.T) {
	f := newFixture(t)
	broken := &brokenObjects{Objects: f.store, unreadable: make(map[string]bool)}
	service := ledger.New(ledger.Ports{Objects: broken}, ledger.Options{})
	var readable, damaged []string
	for i := range 9 {
		key := fmt.Sprint("key", i)
		f.ingest("bucket", key, "[C@10]")
		if broken.unreadable[key] = i%3 == 0; broken.unreadable[key] {
			damaged = append(damaged, key)
		} else {
			readable = append(readable, key)
		}
	}
	for _, params := range []map[string][]string{{"bucket": {"bucket"}}, {"bucket": {"bucket"}, "key[]": append(slices.Clone(readable), damaged...)}} {
		for limit := 1; limit < 10; limit++ {
			var found, left []string
			for q := (ledger.Query{Filter: f.parseFilter(params), Limit: limit}); ; {
				page, err := service.List(t.Context(), q)
				require.NoError(t, err)
				for i := range page.Rows {
					found = append(found, page.Rows[i].Name.Key())
				}
				for _, d := range page.Damaged {
					left = append(left, d.Key)
				}
				if q.Token = page.Next; q.Token == "" {
					break
				}
			}
			require.Equal(t, readable, found, "limit %d", limit)
			require.Equal(t, damaged, left, "limit %d", limit)
		}
	}
}

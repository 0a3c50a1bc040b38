package objects

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// checkedScript produces spilled rows of several versions, a generated row, duplicates, and a late event.
const checkedScript = "[C@10/1+10] [D@20/1+20] [C@30/2+30] [C@-/2+36] [C@35/2+35] [C@40/3+40] [C@50/4+50] [C@60/4+60] [C@12/1+12] [C@12/1+12] [C@70/5+70] [C@-/5+80]"

// A checkedStore contains two objects and a running job. A test damages one of their documents and runs
// a check.
type checkedStore struct {
	t         *testing.T
	store     *Store
	container *azcosmos.ContainerClient
}

func newCheckedStore(t *testing.T) *checkedStore {
	t.Helper()
	a := accounttest.New(t, embedded.Options{}, Containers())
	db := a.Connect()
	container, err := db.Container(objectsContainer)
	require.NoError(t, err)
	c := &checkedStore{t, New(db, Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}}), container}
	for _, key := range []string{"key", "sound"} {
		c.ingest(key, checkedScript)
	}
	require.NoError(t, c.store.CreateJob(t.Context(), c.job(1)))
	return c
}

func (c *checkedStore) job(n byte) *domain.Job {
	return &domain.Job{
		ID: domain.NewJobID(domain.CrawlJob, objecttest.FirstMoment, [10]byte{n}), Bucket: "bucket", Request: "{}", State: domain.JobRunning, Started: objecttest.FirstMoment,
	}
}

func (c *checkedStore) ingest(key, script string) {
	c.t.Helper()
	name := must(domain.ParseObjectName("bucket", key))
	for _, call := range objecttest.Calls(script) {
		results, err := c.store.Ingest(c.t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: call[0]}})
		require.NoError(c.t, err)
		require.NoError(c.t, results[0].Err)
	}
}

// find returns the document for which has is true.
func (c *checkedStore) find(has func(doc map[string]any) bool) map[string]any {
	c.t.Helper()
	for pager := c.container.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(c.t.Context())
		require.NoError(c.t, err)
		for _, item := range page.Items {
			doc := make(map[string]any)
			require.NoError(c.t, json.Unmarshal(item, &doc))
			if has(doc) {
				return doc
			}
		}
	}
	require.FailNow(c.t, "there is no such document")
	return nil
}

// watchAndChange watches the object and changes it. The store creates a change for the watch and a change
// for the topic.
func (c *checkedStore) watchAndChange() {
	c.t.Helper()
	c.ingest("key", "[C@90/9]")
	_, err := c.store.MarkWatched(c.t.Context(), domain.ObjectResourceOf(must(domain.ParseObjectName("bucket", "key"))), false)
	require.NoError(c.t, err)
	options := c.store.opts
	options.Topic = true
	c.store = New(c.store.db, options)
	c.ingest("key", "[C@91/9]")
	require.Empty(c.t, c.check().Findings)
}

func (c *checkedStore) object() map[string]any {
	return c.find(func(doc map[string]any) bool { return doc["kind"] == "object" && doc["key"] == "key" })
}

// findSpilled returns the document with a kind and a sequencer. The kind is that of spilled rows or of
// copies.
func (c *checkedStore) findSpilled(kind, sequencer string) map[string]any {
	return c.find(func(doc map[string]any) bool {
		fields, _ := doc["row"].(map[string]any)
		return doc["kind"] == kind && doc["object"] == objectID("key") && (fields["sequencer"] == sequencer || sequencer == "" && fields["number"] != nil)
	})
}

func (c *checkedStore) put(doc map[string]any) {
	c.t.Helper()
	text, err := json.Marshal(doc)
	require.NoError(c.t, err)
	_, err = c.container.UpsertItem(c.t.Context(), partitionOf(doc), text, nil)
	require.NoError(c.t, err)
}

func (c *checkedStore) remove(doc map[string]any) {
	c.t.Helper()
	_, err := c.container.DeleteItem(c.t.Context(), partitionOf(doc), doc["id"].(string), nil)
	require.NoError(c.t, err)
}

func partitionOf(doc map[string]any) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(doc["partitionKey"].(string))
}

func (c *checkedStore) check() repository.CheckReport {
	c.t.Helper()
	report, err := c.store.Check(c.t.Context(), CheckOptions{})
	require.NoError(c.t, err)
	require.EqualValues(c.t, len(report.Findings), report.Found)
	return report
}

func TestCheckOfIntactObjects_FindsNothing(t *testing.T) {
	c := newCheckedStore(t)
	require.Equal(t, repository.CheckReport{Objects: 2, Rows: 22, Findings: []repository.Finding{}}, c.check())
}

func TestCheckOfAnAccountWithoutTheContainer_FindsNoObjects(t *testing.T) {
	store := New(accounttest.New(t, embedded.Options{}, nil).Connect(), Options{})
	report, err := store.Check(t.Context(), CheckOptions{})
	require.NoError(t, err)
	require.Equal(t, repository.CheckReport{Findings: []repository.Finding{}}, report)
}

func TestCheckFindsEachViolation(t *testing.T) {
	rows := func(doc map[string]any) []any { return doc["rows"].([]any) }
	row := func(doc map[string]any, i int) map[string]any { return rows(doc)[i].(map[string]any) }
	changeObject := func(change func(doc map[string]any)) func(c *checkedStore) {
		return func(c *checkedStore) {
			doc := c.object()
			change(doc)
			c.put(doc)
		}
	}
	changeSpilled := func(kind, sequencer string, change func(doc, row map[string]any)) func(c *checkedStore) {
		return func(c *checkedStore) {
			doc := c.findSpilled(kind, sequencer)
			change(doc, doc["row"].(map[string]any))
			c.put(doc)
		}
	}
	for _, tc := range []struct {
		name, rule, kind string
		damage           func(c *checkedStore)
	}{
		{"a spilled row that is gone", "L5", countWrong, func(c *checkedStore) { c.remove(c.findSpilled("row", "12")) }},
		{"a row that is gone", "L5", countWrong, changeObject(func(doc map[string]any) { doc["rows"] = rows(doc)[1:] })},
		{"spilled rows of an object that is gone", "L1", rowStray, func(c *checkedStore) { c.remove(c.object()) }},
		{"an object that cannot be read", "L1", unreadable, changeObject(func(doc map[string]any) { doc["rows"] = "none" })},
		{"a time that cannot be read", "L1", unreadable, changeObject(func(doc map[string]any) { row(doc, 0)["time"] = "yesterday" })},
		{"a spilled row that cannot be read", "L1", unreadable, changeSpilled("row", "12", func(_, row map[string]any) { row["form"] = 7; row["sequencer"] = "\u0000" + string(make([]byte, 100)) })},
		{"a newer format", "L1", repository.NewerFormatFinding, changeObject(func(doc map[string]any) { doc["v"] = 99 })},
		{"an object in another shard", "L1", shardWrong, func(c *checkedStore) {
			doc := c.object()
			doc["partitionKey"] = "shard|07|bucket"
			c.put(doc)
		}},
		{"an object of a bucket that is not there", "L1", shardWrong, func(c *checkedStore) {
			doc := c.object()
			doc["bucket"] = "other"
			c.put(doc)
		}},
		{"two rows of one event", "L2", rowTwice, changeObject(func(doc map[string]any) { doc["rows"] = append([]any{row(doc, 0)}, rows(doc)...) })},
		{"a row that is spilled, too", "L2", rowTwice, func(c *checkedStore) {
			inside := c.object()["rows"].([]any)[0].(map[string]any)
			doc := c.findSpilled("row", "12")
			doc["row"] = inside
			c.put(doc)
		}},
		{"a spilled row that a query does not find", "L2", rowWrong, changeSpilled("row", "12", func(doc, _ map[string]any) { doc["order"] = "0" })},
		{"a current row below another one", "L3", currentWrong, changeObject(func(doc map[string]any) { doc["current"] = row(doc, 0) })},
		{"no current row", "L3", currentWrong, changeObject(func(doc map[string]any) { delete(doc, "current"); delete(doc, "live") })},
		{"an object that only says that it is not live", "L3", currentWrong, changeObject(func(doc map[string]any) { delete(doc, "live") })},
		{"a floor above a row", "L4", floorWrong, changeObject(func(doc map[string]any) { doc["floor"].(map[string]any)["base"] = "FF" })},
		{"a floor below a spilled row", "L4", floorWrong, changeObject(func(doc map[string]any) { doc["floor"].(map[string]any)["base"] = "11" })},
		{"rows in another order", "L4", floorWrong, changeObject(func(doc map[string]any) { slices.Reverse(rows(doc)) })},
		{"a copy that is gone", "L4", copyWrong, func(c *checkedStore) { c.remove(c.findSpilled("head", "20")) }},
		{"a copy that is old", "L4", copyWrong, changeSpilled("head", "20", func(_, row map[string]any) { row["duplicates"] = 3 })},
		{"a copy in another order", "L4", copyWrong, changeSpilled("head", "20", func(doc, _ map[string]any) { doc["live"] = "0" })},
		{"a copy of another version", "L4", copyWrong, changeSpilled("head", "20", func(_, row map[string]any) { row["version"] = "9" })},
		{"a version that is not listed", "L4", countWrong, changeObject(func(doc map[string]any) { doc["spilledVersions"] = []any{"1"} })},
		{"a duplicate that is not counted", "L5", countWrong, changeObject(func(doc map[string]any) { delete(doc, "duplicates") })},
		{"an event that is not counted", "L5", countWrong, changeObject(func(doc map[string]any) { doc["events"] = 3 })},
		{"a number that occurs twice", "L6", numberWrong, changeSpilled("row", "", func(_, row map[string]any) { row["number"] = 2 })},
		{"a number that was not given out", "L6", numberWrong, changeObject(func(doc map[string]any) { doc["generated"] = 1 })},
		{"a job that ended, and holds the bucket", "L8", jobWrong, func(c *checkedStore) {
			doc := c.find(func(doc map[string]any) bool { return doc["kind"] == "job" })
			doc["state"] = "completed"
			delete(doc, "live")
			c.put(doc)
		}},
		{"a job that runs, and does not hold the bucket", "L8", jobWrong, func(c *checkedStore) {
			c.remove(c.find(func(doc map[string]any) bool { return doc["kind"] == "running" }))
		}},
		{"two jobs that run at once", "L8", jobWrong, func(c *checkedStore) {
			running := c.find(func(doc map[string]any) bool { return doc["kind"] == "running" })
			c.remove(running)
			require.NoError(c.t, c.store.CreateJob(c.t.Context(), c.job(2)))
		}},
		{"a change that cannot be read", "L1", unreadable, func(c *checkedStore) {
			c.watchAndChange()
			doc := c.find(func(doc map[string]any) bool { return doc["kind"] == "change" })
			doc["event"] = "created"
			c.put(doc)
		}},
		{"a change for the topic that cannot be read", "L1", unreadable, func(c *checkedStore) {
			c.watchAndChange()
			doc := c.find(func(doc map[string]any) bool { return doc["kind"] == "state-change" })
			doc["event"] = "read"
			c.put(doc)
		}},
		{"an inventory without its manifest", "L8", jobWrong, func(c *checkedStore) {
			require.NoError(c.t, c.store.CreateJob(c.t.Context(), newInventory(3, "manifest")))
			require.Empty(c.t, c.check().Findings)
			c.remove(c.find(func(doc map[string]any) bool { return doc["kind"] == "request" }))
		}},
		{"a job that cannot be read", "L1", unreadable, func(c *checkedStore) {
			doc := c.find(func(doc map[string]any) bool { return doc["kind"] == "job" })
			doc["uuid"] = "none"
			c.put(doc)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // in simulated time, so that pauses take no real time
				c := newCheckedStore(t)
				tc.damage(c)
				report := c.check()
				found := slices.IndexFunc(report.Findings, func(f repository.Finding) bool { return f.Rule == tc.rule && f.Kind == tc.kind })
				require.NotEqual(t, -1, found, "%+v", report.Findings)
				f := report.Findings[found]
				require.NotEmpty(t, f.Text)
				require.NotEmpty(t, f.Where)
				require.False(t, report.Clean())
				require.Equal(t, tc.kind != repository.NewerFormatFinding, f.Damage)
				for _, f := range report.Findings {
					require.NotContains(t, f.Where, "sound")
				}
			})
		})
	}
}

// Each check stops after one page, and the next check resumes at the reported position. Together they
// find the same as a single check.
func TestACheck_ResumesWhereAnotherCheckStopped(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	store := New(a.Connect(), Options{Shards: 3})
	for i := range 3 * checkedPage {
		name := must(domain.ParseObjectName("bucket", fmt.Sprint("key-", i)))
		_, err := store.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: objecttest.Calls("[C@10]")[0][0]}})
		require.NoError(t, err)
	}
	objects := make(map[string]int64) // number of checked objects, by position
	whole, err := store.Check(t.Context(), CheckOptions{Progress: func(r repository.CheckReport) { objects[r.Resume] = r.Objects }})
	require.NoError(t, err)
	require.EqualValues(t, 3*checkedPage, whole.Objects)
	require.Greater(t, len(objects), 3)
	for _, position := range slices.Sorted(maps.Keys(objects)) {
		if position == "" {
			continue
		}
		require.True(t, IsCheckPosition(position))
		rest, err := store.Check(t.Context(), CheckOptions{Resume: position})
		require.NoError(t, err)
		require.Equal(t, whole.Objects, objects[position]+rest.Objects)
	}
}

func TestACheck_RefusesAPositionThatNoCheckHasReported(t *testing.T) {
	c := newCheckedStore(t)
	for _, position := range []string{"AAE", "objects.", "objects.!", "objects." + base64.RawURLEncoding.EncodeToString([]byte("none"))} {
		_, err := c.store.Check(t.Context(), CheckOptions{Resume: position})
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%s: %v", position, err)
	}
}

// A check that runs while events arrive, a sweep forgets rows and reads are stale finds nothing.
func TestACheckOfObjectsThatChange_FindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draw := lockedDraws(rand.New(rand.NewPCG(1, 2)))
		a := accounttest.New(t, embedded.Options{Consistency: "Session", Stale: func() int {
			if draw(8) > 0 {
				return 0
			}
			return draw(4)
		}}, Containers())
		k := (&setClock{sweptAt}).keeping()
		store := New(a.Connect(), Options{Shards: 1, Limits: domain.ObjectLimits{Rows: 2}, Retries: 1000, Retention: k.Retention, Clock: k.Clock})
		s := newScript(t, 3, 4, 16, true)
		done := make(chan error, 1)
		go func() {
			err := s.run(t.Context(), store)
			if err == nil {
				err = sweepAll(t.Context(), store)
			}
			done <- err
		}()
		for isDone := false; !isDone; {
			report, err := store.Check(t.Context(), CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, report.Findings)
			select {
			case err := <-done:
				require.NoError(t, err)
				isDone = true
			case <-time.After(time.Second):
			}
		}
	})
}

package objects

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
)

// observeJobs returns a store with a crawl that has ended, and a crawl that another node took over.
func observeJobs(t *testing.T) *observed {
	t.Helper()
	o := newObserved(t, script)
	start := func(n byte) domain.JobID {
		job := &domain.Job{ID: domain.NewJobID(domain.CrawlJob, o.now, [10]byte{n}), Bucket: "bucket", Request: "{}", State: domain.JobRunning, Started: o.now}
		require.NoError(t, o.store.CreateJob(t.Context(), job))
		return job.ID
	}
	_, err := o.store.StopJob(t.Context(), start(1), o.now)
	require.NoError(t, err)
	second := start(2)
	_, err = o.store.ClaimJob(t.Context(), second, "node-1", o.now, o.now.Add(time.Minute))
	require.NoError(t, err)
	job, err := o.store.ClaimJob(t.Context(), second, "node-2", o.now.Add(time.Hour), o.now.Add(2*time.Hour))
	require.NoError(t, err)
	job.Cursor = `{"last":"bQ=="}`
	job.Counts.Seen = 5
	require.NoError(t, o.store.SaveJob(t.Context(), &job))
	require.Positive(t, o.reached["a job was taken over"])
	return o
}

func TestObserver_FindsEachViolationOfJobs(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(ended, running, says members) (also members)
	}{
		{"a job that runs, and no document says so", func(_, _, says members) members { says["gone"] = true; return nil }},
		{"a document that says that another job runs", func(ended, _, says members) members { says["uuid"] = ended["uuid"]; return nil }},
		{"two jobs that run at the same time", func(_, running, _ members) members {
			also := maps.Clone(running)
			also["uuid"], also["id"], also["lease"], also["owner"] = "another", "crawl.another", 0, ""
			return also
		}},
		{"a job that had ended and runs", func(ended, _, _ members) members { ended["state"], ended["live"] = "running", true; return nil }},
		{"a job that had ended and has another report", func(ended, _, _ members) members { ended["cursor"] = "more"; return nil }},
		{"a job of another bucket", func(_, running, _ members) members { running["bucket"] = "other"; return nil }},
		{"a lease that is left out", func(_, running, _ members) members { running["lease"], running["owner"] = 4, "node-3"; return nil }},
		{"a lease of the same number for another node", func(_, running, _ members) members { running["owner"] = "node-3"; return nil }},
		{"a cursor that moves back", func(_, running, _ members) members { running["cursor"] = `{"last":"YQ=="}`; return nil }},
		{"a count that sinks", func(_, running, _ members) members { running["seen"] = 4; return nil }},
		{"a job that is gone", func(_, running, _ members) members { running["gone"] = true; return nil }},
		{"a new job with a lease", func(ended, _, _ members) members {
			also := maps.Clone(ended)
			also["uuid"], also["id"], also["lease"], also["jobKind"] = "another", "inventory.another", 3, "inventory"
			return also
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observeJobs(t)
			docs := make(map[string]members) // the ended job, the running job, and the document that names the running job
			for id, c := range o.documents {
				d := members{}
				require.NoError(t, json.Unmarshal(c.JSON, &d))
				d["id"] = id
				switch {
				case d["kind"] == "running":
					docs["says"] = d
				case d["kind"] == "job" && d["live"] == true:
					docs["running"] = d
				case d["kind"] == "job":
					docs["ended"] = d
				}
			}
			also := tc.edit(docs["ended"], docs["running"], docs["says"])
			var changes []embedded.Change
			for _, d := range []members{docs["ended"], docs["running"], docs["says"], also} {
				if d == nil {
					continue
				}
				c := embedded.Change{Container: containers.Objects, Partition: `["jobs"]`, ID: d["id"].(string)}
				if d["gone"] == nil {
					text, err := json.Marshal(d)
					require.NoError(t, err)
					c.JSON = text
				}
				changes = append(changes, c)
			}
			require.ErrorContains(t, o.Commit(changes), "L8: ")
		})
	}
}

func TestCrawledRow_BelongsToAJobForItsBucket(t *testing.T) {
	o := observeJobs(t)
	changes := o.editDocument(t, func(docs map[string]members) {
		d := docs[idOf("key")]
		row := members{"version": "5", "type": created, "message": "crawl/none/0", "time": "2026-03-04T08:06:27Z", "baseForm": hexForm, "base": "70", "rank": behindRow, "number": 2, "writeId": "another"}
		d["rows"] = append(d["rows"].([]any), row)
	})
	require.ErrorContains(t, o.Commit(changes), "L8: ")
}

func TestJobRequest_NeverChanges(t *testing.T) {
	o := newObserved(t, "[C@10/1]")
	id := domain.NewJobID(domain.InventoryJob, o.now, [10]byte{1})
	require.NoError(t, o.store.CreateJob(t.Context(), &domain.Job{ID: id, Bucket: "bucket", Request: "manifest", State: domain.JobRunning, Started: o.now}))
	_, err := o.store.StopJob(t.Context(), id, o.now) // the request of an ended job expires
	require.NoError(t, err)
	c := o.documents["request."+id.UUID()]
	require.NoError(t, o.Commit([]embedded.Change{c}))
	c.JSON = []byte(`{"kind":"request","request":"another"}`)
	require.ErrorContains(t, o.Commit([]embedded.Change{c}), "L8: ")
}

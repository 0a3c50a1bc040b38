package api_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const crawls = "/v1/objects/crawls"

// withObjects gives a server objects in memory, and a store with a bucket. Its jobs wait for work.
func withObjects() (*ledger.Service, *memory.Source, func(*api.Options, *hub.Options)) {
	source := memory.NewSource("bucket", "another")
	objects := ledger.New(ledger.Ports{Objects: memory.NewObjects(), Jobs: memory.NewJobs(), Source: source}, ledger.Options{})
	return objects, source, func(o *api.Options, _ *hub.Options) { o.Objects = objects }
}

// works has a service work on jobs until the test ends.
func works(t *testing.T, objects *ledger.Service) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		objects.RunJobs(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// A startedJob is the document of a job.
type startedJob struct {
	ID      string         `json:"id"`
	State   string         `json:"state"`
	Request map[string]any `json:"request"`
	Counts  map[string]int `json:"counts"`
}

func readJob(t *testing.T, a answer) (job startedJob) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(a.body), &job))
	require.NotEmpty(t, job.ID)
	return job
}

func TestACrawl_IsStartedShownAndStopped(t *testing.T) {
	_, _, with := withObjects()
	f := serve(t, with)
	a := f.do("POST", crawls, `{"bucket":"bucket","prefix":"a/"}`).wants(202)
	job := readJob(t, a)
	require.Equal(t, "running", job.State)
	require.Equal(t, map[string]any{"prefix": "a/"}, job.Request)
	require.Equal(t, crawls+"/"+job.ID, a.header.Get("Location"))
	a = f.do("POST", crawls, `{"bucket":"bucket"}`)
	a.problem(409, "crawl-under-way")
	require.Contains(t, a.body, job.ID)
	other := readJob(t, f.do("POST", crawls, `{"bucket":"another"}`).wants(202))
	require.Equal(t, job, readJob(t, f.do("GET", crawls+"/"+job.ID, "").wants(200)))
	for range 2 {
		require.Equal(t, "stopped", readJob(t, f.do("DELETE", crawls+"/"+job.ID, "").wants(200)).State)
	}
	var list struct {
		Results []startedJob
		Links   map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", crawls+"?limit=1", "").wants(200).body), &list))
	require.Len(t, list.Results, 1)
	require.Equal(t, other.ID, list.Results[0].ID)
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", list.Links["next"], "").wants(200).body), &list))
	require.Equal(t, job.ID, list.Results[0].ID)
	f.do("POST", crawls, `{"bucket":"bucket"}`).wants(202)
}

func TestACrawlIsAnsweredOnceItHasEnded_IfTheClientWaits(t *testing.T) {
	objects, source, with := withObjects()
	for _, key := range []string{"a", "b"} {
		source.Put("bucket", repository.SourceObject{Key: key})
	}
	works(t, objects)
	f := serve(t, with)
	a := f.do("POST", crawls, `{"bucket":"bucket"}`, "Prefer", "respond-async, wait=20").wants(200)
	require.Equal(t, "wait=20", a.header.Get("Preference-Applied"))
	job := readJob(t, a)
	require.Equal(t, "completed", job.State)
	require.Equal(t, map[string]int{"seen": 2, "created": 2, "deleted": 0, "unchanged": 0, "refused": 0}, job.Counts)
	for _, preference := range []string{"wait", "wait=0", "wait=x", "wait=-1", "waiting=5"} {
		a := f.do("POST", crawls, `{"bucket":"another"}`, "Prefer", preference)
		require.Empty(t, a.header.Get("Preference-Applied"), preference)
	}
}

func TestACrawlThatIsNotDoneInTimeIsAnsweredAsItIs(t *testing.T) {
	_, _, with := withObjects()
	f := serve(t, with)
	require.Equal(t, "running", readJob(t, f.do("POST", crawls, `{"bucket":"bucket"}`, "Prefer", "wait=1").wants(202)).State)
}

func TestACrawlIsRefused(t *testing.T) {
	_, _, with := withObjects()
	f := serve(t, with)
	for _, body := range []string{`{}`, `{"bucket":7}`, `{"bucket":"bucket","x":1}`, `{"bucket":"bucket","bucket":"bucket"}`, `{"bucket":""}`} {
		f.do("POST", crawls, body).problem(400, "invalid")
	}
	f.do("POST", crawls, `[]`).problem(400, "not-json")
	f.do("POST", crawls, `{"bucket":"unknown"}`).problem(404, "not-found")
	f.do("GET", crawls+"/"+id(1), "").problem(404, "not-found")
	f.do("DELETE", crawls+"/none", "").problem(404, "not-found")
	for _, values := range []string{"limit=0", "limit=101", "before=x", "x=1"} {
		f.do("GET", crawls+"?"+values, "").problem(400, "invalid")
	}
	f.do("POST", crawls, `{"bucket":"bucket"}`, "Authorization", "Bearer wrong").problem(401, "missing-token")
	serve(t).do("POST", crawls, `{"bucket":"bucket"}`).problem(503, "not-provisioned")
	serve(t, func(o *api.Options, _ *hub.Options) {
		o.Objects = ledger.New(ledger.Ports{Objects: memory.NewObjects(), Jobs: memory.NewJobs()}, ledger.Options{})
	}).do("POST", crawls, `{"bucket":"bucket"}`).problem(404, "not-found")
}

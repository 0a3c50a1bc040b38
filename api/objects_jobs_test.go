package api_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const crawls = "/v1/objects/crawls"

// withObjects configures a server with objects in memory, and a store that contains a bucket. Its
// jobs do not run until runJobs is called.
func withObjects() (*ledger.Service, *memory.Source, func(*api.Options, *hub.Options)) {
	source := memory.NewSource("bucket", "another")
	objects := ledger.New(ledger.Ports{Objects: memory.NewObjects(), Jobs: memory.NewJobs(), Source: source}, ledger.Options{JSONPatch: jsonpatch.Apply})
	return objects, source, func(o *api.Options, _ *hub.Options) { o.Objects = objects }
}

// runJobs makes a service execute its jobs until the test ends.
func runJobs(t *testing.T, objects *ledger.Service) {
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

func readJob(t *testing.T, a domainAnswer) (job startedJob) {
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

func TestCrawl_ReturnsItsResultIfTheClientWaits(t *testing.T) {
	objects, source, with := withObjects()
	for _, key := range []string{"a", "b"} {
		source.Put("bucket", repository.SourceObject{Key: key})
	}
	runJobs(t, objects)
	f := serve(t, with)
	a := f.do("POST", crawls, `{"bucket":"bucket"}`, "Prefer", "respond-async, wait=20").wants(200)
	require.Equal(t, "wait=20", a.header.Get("Preference-Applied"))
	job := readJob(t, a)
	require.Equal(t, "completed", job.State)
	require.Equal(t, map[string]int{"seen": 2, "created": 2, "deleted": 0, "changed": 0, "unchanged": 0, "refused": 0}, job.Counts)
	for _, preference := range []string{"wait", "wait=0", "wait=x", "wait=-1", "waiting=5"} {
		a := f.do("POST", crawls, `{"bucket":"another"}`, "Prefer", preference)
		require.Empty(t, a.header.Get("Preference-Applied"), preference)
	}
}

func TestCrawl_ReturnsItsProgressWhenTheWaitEnds(t *testing.T) {
	_, _, with := withObjects()
	f := serve(t, with)
	require.Equal(t, "running", readJob(t, f.do("POST", crawls, `{"bucket":"bucket"}`, "Prefer", "wait=1").wants(202)).State)
}

func TestCrawl_RefusesInvalidRequests(t *testing.T) {
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

const inventories = "/v1/objects/inventories"

func TestInventory_AddsItsObjects(t *testing.T) {
	objects, source, with := withObjects()
	put := func(key, content string) {
		name, err := domain.ParseObjectName("another", key)
		require.NoError(t, err)
		source.PutContent(name, []byte(content))
	}
	const manifest = `{"sourceBucket":"bucket","destinationBucket":"another","creationTimestamp":"1700000000000","fileFormat":"CSV","files":[{"key":"data.csv"}]}`
	put("data.csv", "bucket,a\nbucket,b\n")
	put("manifest.json", manifest)
	runJobs(t, objects)
	f := serve(t, with)
	job := readJob(t, f.do("POST", inventories, `{"manifest":`+manifest+`}`, "Prefer", "wait=20").wants(200))
	require.Equal(t, "completed", job.State)
	require.Equal(t, 2, job.Counts["created"])
	require.Equal(t, job, readJob(t, f.do("GET", inventories+"/"+job.ID, "").wants(200)))
	f.do("GET", crawls+"/"+job.ID, "").problem(404, "not-found")
	job = readJob(t, f.do("POST", inventories, `{"bucket":"another","key":"manifest.json"}`, "Prefer", "wait=20").wants(200))
	require.Equal(t, 2, job.Counts["unchanged"])
	f.do("DELETE", inventories+"/"+job.ID, "").wants(200)
	list := f.do("GET", inventories, "").wants(200).body
	require.Contains(t, list, job.ID)
	require.NotContains(t, list, "manifest", "a list of 100 would have megabytes of them")
	for _, body := range []string{`{}`, `{"bucket":"another"}`, `{"manifest":{}}`, `{"manifest":[]}`, `{"manifest":` + manifest + `,"bucket":"another","key":"manifest.json"}`} {
		f.do("POST", inventories, body).problem(400, "invalid")
	}
	f.do("POST", inventories, `{"bucket":"another","key":"none"}`).problem(404, "not-found")
}

const patches = "/v1/objects/patches"

func TestManyRowsArePatched(t *testing.T) {
	objects, source, with := withObjects()
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		source.Put("bucket", repository.SourceObject{Key: key})
	}
	runJobs(t, objects)
	f := serve(t, with)
	f.do("POST", crawls, `{"bucket":"bucket"}`, "Prefer", "wait=20").wants(200)
	const add = `[{"op": "add", "path": "/lane", "value": 3}]`
	a := f.do("POST", patches+"?bucket=bucket&key=a/*", add, "Prefer", "wait=20", "Content-Type", "application/json-patch+json").wants(200)
	job := readJob(t, a)
	require.Equal(t, patches+"/"+job.ID, a.header.Get("Location"))
	require.Equal(t, "completed", job.State)
	require.Equal(t, map[string]int{"seen": 2, "created": 0, "deleted": 0, "changed": 2, "unchanged": 0, "refused": 0}, job.Counts)
	require.Equal(t, map[string]any{"bucket": []any{"bucket"}, "key": []any{"a/*"}}, job.Request["query"])
	require.Equal(t, job, readJob(t, f.do("GET", patches+"/"+job.ID, "").wants(200)))
	require.Contains(t, f.do("GET", patches, "").wants(200).body, job.ID)
	f.do("DELETE", patches+"/"+job.ID, "").wants(200)

	var refused struct {
		Counts   map[string]int
		Failures []struct{ Object, Reason string }
	}
	a = f.do("POST", patches+"?key[]=a/1&key[]=b/1", `{"attributes":`+add+`}`, "Prefer", "wait=20").wants(200)
	require.NoError(t, json.Unmarshal([]byte(a.body), &refused))
	require.Equal(t, []int{2, 1, 1}, []int{refused.Counts["seen"], refused.Counts["changed"], refused.Counts["refused"]})
	require.Len(t, refused.Failures, 1)
	require.Contains(t, refused.Failures[0].Reason, "there is a value at the path")
	require.Contains(t, f.do("GET", "/v1/objects/"+refused.Failures[0].Object, "").wants(200).body, `"key":"a/1"`)
}

func TestPatchOfManyRows_RefusesInvalidRequests(t *testing.T) {
	_, _, with := withObjects()
	f := serve(t, with)
	const add = `[{"op": "add", "path": "/lane", "value": 3}]`
	for query, want := range map[string]string{
		"":                    "Nothing was changed: the query has no condition on the rows to patch",
		"?currentState=false": "Nothing was changed: the query has no condition",
		"?key=a&limit=3":      "unknown query parameter",
		"?key=a&page=3":       "pages have no numbers",
		"?key=%ff":            "Nothing was changed: key: want UTF-8",
	} {
		require.Contains(t, f.do("POST", patches+query, add).problem(400, "invalid").Detail, want)
	}
	p := f.do("POST", patches+"?key=a", `[{"op": "remove", "path": "/lane"}]`).problem(400, "invalid")
	require.Equal(t, []string{"/0/op"}, p.pointers())
	f.do("POST", patches+"?key=a", add, "Content-Type", "text/plain").wants(415)
	f.do("POST", patches+"?key=a", add, "Authorization", "Bearer wrong").problem(401, "missing-token")
	f.do("GET", patches+"/"+id(1), "").problem(404, "not-found")
	require.NotContains(t, f.do("GET", patches, "").wants(200).body, "state")
}

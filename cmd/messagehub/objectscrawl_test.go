package main

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// serveJobs starts a hub that executes ledger jobs. Its bucket contains three
// objects.
func serveJobs(t *testing.T) (url string) {
	t.Helper()
	store, source := memory.New(memory.Options{}), memory.NewSource("bucket")
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		source.Put("bucket", repository.SourceObject{Key: key})
	}
	known := ledger.New(ledger.Ports{Objects: memory.NewObjects(), Jobs: memory.NewJobs(), Source: source}, ledger.Options{JSONPatch: jsonpatch.Apply})
	ctx, stop := context.WithCancel(t.Context())
	var jobs sync.WaitGroup
	jobs.Go(func() { known.RunJobs(ctx) })
	server := httptest.NewServer(api.New(api.Options{
		Hub: hub.New(store, store, store, hub.Options{}), Objects: known,
		IsOwnHost: loopback.IsHost, NoProxies: true, AdminToken: operatorToken,
	}).Handler())
	t.Cleanup(func() {
		server.Close()
		stop()
		jobs.Wait()
	})
	return server.URL
}

func TestObjectsCrawl_PrintsWhatDiffers(t *testing.T) {
	url := serveJobs(t)
	require.Equal(t, result{0, "2 objects listed: 2 created or changed, 0 deleted, 0 unchanged\n", ""}, objects(t, url, "crawl", "bucket", "--prefix", "a/"))
	require.Equal(t, result{0, "3 objects listed: 1 created or changed, 0 deleted, 2 unchanged\n", ""}, objects(t, url, "crawl", "bucket"))
	require.Regexp(t, `^{"id":"[^"]+","bucket":"bucket","state":"completed",.*"counts":{"seen":3,"created":0,`, objects(t, url, "crawl", "bucket", "--json").out)
	got := objects(t, url, "crawl", "other")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, `there is no bucket "other"`)
	require.Equal(t, 2, objects(t, url, "crawl").status)
	require.Equal(t, 2, objects(t, url, "crawl", "").status)
}

package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const watchedHub = "https://hub.example.org"

// watchHub starts an in-memory hub that supports watches.
func watchHub(t *testing.T) (url string) {
	t.Helper()
	base, err := domain.ParseResourceBase(watchedHub)
	require.NoError(t, err)
	store, cursors, resources := memory.New(memory.Options{}), memory.NewCursors(time.Now), memory.NewResources(time.Now)
	service := watch.New(watch.Ports{
		Watches: memory.NewWatches(cursors), Resources: resources, Changes: resources, Cursors: cursors,
		Streams: memory.NewStreams(repository.MessageRetention, time.Now), Bundles: store,
	}, watch.Options{Base: base})
	server := httptest.NewServer(api.New(api.Options{Hub: hub.New(store, store, store, hub.Options{}), Watches: service, IsOwnHost: loopback.IsHost}).Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// watches runs a command about watches with the hub at url.
func watches(t *testing.T, url, name string, args ...string) result {
	t.Helper()
	return messagehub(t, "", append([]string{"watches", name, "--url", url, "--actor", actorA}, args...)...)
}

func TestWatches_AreAddedListedShownAndRemoved(t *testing.T) {
	url := watchHub(t)
	require.Equal(t, result{0, actorA + " has no watches\n", ""}, watches(t, url, "list"))
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		added := watches(t, url, "add", "--resource", watchedHub+"/v1/resources/"+name, "--callback", "https://example.org/"+name, "--absent")
		require.Equal(t, 0, added.status, added.err)
		ids = append(ids, strings.TrimSpace(added.out))
	}
	listed := watches(t, url, "list")
	require.Equal(t, 0, listed.status, listed.err)
	for i, id := range ids {
		require.Contains(t, listed.out, id)
		require.Contains(t, listed.out, watchedHub+"/v1/resources/"+string(rune('a'+i)))
	}
	listed = watches(t, url, "list", "--limit", "2", "--json")
	require.Equal(t, 2, strings.Count(listed.out, "callback"))
	require.Equal(t, "messagehub: the list is longer; --limit shows more of it\n", listed.err)
	shown := watches(t, url, "show", ids[1])
	for _, want := range []string{"watch      " + ids[1], "resource   " + watchedHub + "/v1/resources/b", "calls      https://example.org/b", "created    20", "changes    0", "waiting    0"} {
		require.Contains(t, shown.out, want)
	}
	require.Contains(t, watches(t, url, "show", "--json", ids[1]).out, `"callback":"https://example.org/b"`)
	require.Equal(t, result{0, "deleted " + ids[1] + "\n", ""}, watches(t, url, "remove", ids[1]))
	require.Equal(t, 1, watches(t, url, "show", ids[1]).status)
	require.Equal(t, 1, watches(t, url, "remove", ids[1]).status)
}

func TestWatches_ReportRefusalsAndWrongValues(t *testing.T) {
	url := watchHub(t)
	got := watches(t, url, "add", "--resource", "x", "--callback", "y")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "--resource: ")
	got = watches(t, url, "add", "--resource", watchedHub+"/v1/resources/a", "--callback", "https://example.org")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "404")
	require.Equal(t, 2, watches(t, url, "show", "x").status)
	require.Equal(t, 2, watches(t, url, "show").status)
	require.Equal(t, 2, watches(t, url, "list", "x").status)
	require.Equal(t, 2, messagehub(t, "", "watches", "list", "--url", url).status)
	require.Equal(t, 0, messagehub(t, "", "watches").status)
}

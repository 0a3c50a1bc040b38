package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// objectHub starts an in-memory hub that has recorded objects. Each object was
// created, deleted, and created again.
func objectHub(t *testing.T, objects int) (url string) {
	t.Helper()
	store, found := memory.New(memory.Options{}), memory.NewObjects()
	for i := range objects {
		name, err := domain.ParseObjectName("bucket", fmt.Sprintf("key %04d", i))
		require.NoError(t, err)
		for _, call := range objecttest.Calls("[C@01] [D@02+5] [C@03+9]") {
			size := int64(1 << 60)
			call[0].Size, call[0].ETag, call[0].Attributes = &size, fmt.Sprintf(`"%d"`, i), `{"sample":"L1"}`
			_, err := found.Ingest(t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: call[0]}})
			require.NoError(t, err)
		}
	}
	server := httptest.NewServer(api.New(api.Options{
		Hub: hub.New(store, store, store, hub.Options{}), Objects: ledger.New(ledger.Ports{Objects: found}, ledger.Options{}),
		IsOwnHost: loopback.IsHost, NoProxies: true,
	}).Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// objects runs a command about objects with the hub at url.
func objects(t *testing.T, url, name string, args ...string) result {
	t.Helper()
	return messagehub(t, "", append([]string{"objects", name, "--url", url, "--data", t.TempDir()}, args...)...)
}

func TestObjects_AreListedAndShown(t *testing.T) {
	url := objectHub(t, 3)
	listed := objects(t, url, "ls")
	require.Equal(t, 0, listed.status, listed.err)
	lines := strings.Split(strings.TrimSpace(listed.out), "\n")
	require.Len(t, lines, 4)
	require.Regexp(t, `^bucket +key 0000 +null +Created +2026-03-04T05:06:16Z +1152921504606846976 +yes +[A-Za-z0-9_-]+$`, lines[1])
	for _, tc := range []struct {
		rows int
		args []string
	}{
		{3, []string{"bucket"}},
		{1, []string{"b*", "key 0001"}},
		{9, []string{"bucket", "KEY*", "--all", "--ignore-case", "--any-order"}},
		{1, []string{"--where", "eTag=2"}},
		{2, []string{"--where", "eTag[]=2", "--where", "eTag[]=1", "--where", "attributes[sample]=L*"}},
	} {
		listed := objects(t, url, "ls", tc.args...)
		require.Equal(t, 1+tc.rows, strings.Count(listed.out, "\n"), "%v: %s%s", tc.args, listed.out, listed.err)
	}
	require.Equal(t, result{0, "there are no such objects\n", ""}, objects(t, url, "ls", "none"))

	fields := strings.Fields(lines[2])
	id := fields[len(fields)-1]
	shown := objects(t, url, "show", id)
	for _, want := range []string{"key         key 0001", "size        1152921504606846976", `etag        "1"`, `attributes  {"sample":"L1"}`, "current     true", "duplicates  0"} {
		require.Contains(t, shown.out, want)
	}
	require.Contains(t, objects(t, url, "show", id, "--json").out, `"size":1152921504606846976`)
	history := objects(t, url, "history", id)
	require.Equal(t, 4, strings.Count(history.out, "\n"), history.err)
	history = objects(t, url, "history", id, "--limit", "2", "--json")
	require.Equal(t, 2, strings.Count(history.out, `"id"`))
	require.Equal(t, "messagehub: the list is longer; --limit shows more of it\n", history.err)
	pairs := objects(t, url, "history", id, "--paired")
	require.Contains(t, pairs.out, "null     2026-03-04T05:06:07Z  2026-03-04T05:06:12Z  1152921504606846976  0           0\n")
	require.Contains(t, objects(t, url, "history", id, "--paired", "--json").out, `{"pairs":[{"created":`)
}

func TestObjects_AreListedThroughAllPages(t *testing.T) {
	url := objectHub(t, 1100)
	listed := objects(t, url, "ls", "--limit", "1050")
	require.Equal(t, 1051, strings.Count(listed.out, "\n"))
	require.Equal(t, "messagehub: the list is longer; --limit shows more of it\n", listed.err)
	require.Equal(t, 1101, strings.Count(objects(t, url, "ls", "--limit", "2000").out, "\n"))
}

func TestObjects_ReportWrongValuesAndMissingRows(t *testing.T) {
	url := objectHub(t, 1)
	for _, tc := range []struct {
		status int
		want   string
		args   []string
	}{
		{2, "--where: want FIELD=VALUE", []string{"ls", "--where", "size"}},
		{2, "--where: key is set by the argument KEY", []string{"ls", "--where", "key=a"}},
		{2, "--limit: want at least 1, got 0", []string{"ls", "--limit", "0"}},
		{2, "the bucket is empty", []string{"ls", ""}},
		{2, "accepts at most 2 arg(s)", []string{"ls", "a", "b", "c"}},
		{2, "want one ID", []string{"show"}},
		{2, "want one ID", []string{"history", "a", "b"}},
		{2, "--paired shows all pairs; leave --limit out", []string{"history", "a", "--paired", "--limit", "1"}},
		{1, "size: want a whole number of bytes", []string{"ls", "--where", "size=x"}},
		{1, `unknown query parameter "x"`, []string{"ls", "--where", "x=1"}},
		{1, "a backslash may only precede", []string{"ls", `\a`}},
		{1, "object id: want the id of an object or a row", []string{"show", "x/y?z"}},
		{1, "(404)", []string{"show", "AQFiAWsBAQRudWxsAjAx"}},
	} {
		got := objects(t, url, tc.args[0], tc.args[1:]...)
		require.Equal(t, tc.status, got.status, "%v: %s", tc.args, got.err)
		require.Contains(t, got.err, tc.want)
		require.Empty(t, got.out)
	}
	require.Equal(t, 2, messagehub(t, "", "objects", "ls", "--url", "x").status)
	require.Equal(t, 0, messagehub(t, "", "objects").status)
}

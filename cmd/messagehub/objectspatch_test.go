package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObjectsPatch_ChangesWhatMatches(t *testing.T) {
	url := serveJobs(t)
	require.Zero(t, objects(t, url, "crawl", "bucket").status)
	patch := filepath.Join(t.TempDir(), "patch.json")
	require.NoError(t, os.WriteFile(patch, []byte(`[{"op": "add", "path": "/lane", "value": 3}]`), 0o600))
	require.Equal(t, result{0, "2 rows matched: 2 changed, 0 unchanged, 0 refused\n", ""}, objects(t, url, "patch", "bucket", "a/*", "--file", patch))
	got := objects(t, url, "patch", "bucket", "--file", patch, "--where", "reason=Crawl")
	require.Zero(t, got.status)
	require.Regexp(t, `^3 rows matched: 1 changed, 0 unchanged, 2 refused\n(\S+: /0: there is a value at the path.*\n){2}$`, got.out)
	require.Regexp(t, `^{"id":"[^"]+","bucket":"bucket","state":"completed",.*"changed":0,.*"failures":\[`, objects(t, url, "patch", "bucket", "--file", patch, "--all", "--json").out)
	require.Contains(t, objects(t, url, "ls", "bucket", "--where", "attributes[lane]=3").out, "b/1")

	require.NoError(t, os.WriteFile(patch, []byte(`[{"op": "remove", "path": "/lane"}]`), 0o600))
	got = objects(t, url, "patch", "bucket", "--file", patch)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "want test, add or copy")
	for _, args := range [][]string{{"patch"}, {"patch", "bucket"}, {"patch", "", "--file", patch}, {"patch", "bucket", "--file", patch, "--where", "x"}} {
		require.Equal(t, 2, objects(t, url, args[0], args[1:]...).status, args)
	}
	require.Equal(t, 1, objects(t, url, "patch", "bucket", "--file", patch+".none").status)
}

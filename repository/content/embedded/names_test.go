package embedded_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestBlobNames_AreDistinctAndStayInTheFolder(t *testing.T) {
	names := []string{
		"a", "A", "a/", "a/b", "a//b", "/a", "//", "/", "a.", ".a", ".", "..", "../a", "../../../../etc/passwd", "a/../b", "./a",
		"a b", " ", "a%2Fb", "%", "a?b=c", "a#b", "a+b", "a&b", "a:b", "æøå", "日本語", "e\u0301", "é", "+", "+lock", "+unfinished",
		strings.Repeat("x", 1024), strings.Repeat("é", 1024), strings.Repeat("a/", 511) + "a", "con", "nul.txt",
	}
	above := t.TempDir()
	dir := filepath.Join(above, "account")
	a := openAccount(t, embedded.Options{Dir: dir, Containers: []string{"c-c"}})
	c := newClient(t, a, "c-c")
	for _, name := range names {
		putBlob(t, c, name, "content of "+name)
	}
	check := func() {
		for _, name := range names {
			require.Equal(t, "content of "+name, getBlob(t, c, name))
		}
		var listed []string
		pages := c.NewListBlobsFlatPager(nil)
		for pages.More() {
			page, err := pages.NextPage(t.Context())
			require.NoError(t, err)
			for _, item := range page.Segment.BlobItems {
				listed = append(listed, *item.Name)
			}
		}
		require.ElementsMatch(t, names, listed)
	}
	check()
	require.NoError(t, a.Close())
	a = openAccount(t, embedded.Options{Dir: dir})
	c = newClient(t, a, "c-c")
	check()

	entries, err := os.ReadDir(above)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.Regexp(t, `^(account|c-c|\+lock|\+unfinished|\+|[0-9a-f]{64})$`, e.Name())
		return err
	}))
}

func TestBlobNames_TreatBackslashesAsSlashes(t *testing.T) {
	c := newClient(t, openAccount(t, embedded.Options{Containers: []string{"c-c"}}), "c-c")
	putBlob(t, c, `a\b`, "data")
	require.Equal(t, "data", getBlob(t, c, "a/b"))
	require.Equal(t, "data", getBlob(t, c, `a\b`))
	_, err := c.NewBlobClient("copy").StartCopyFromURL(t.Context(), c.NewBlobClient(`a\b`).URL(), nil)
	require.NoError(t, err)
}

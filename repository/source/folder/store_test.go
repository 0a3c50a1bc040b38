package folder_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/repositorytest"
	"github.com/messagehub/messagehub/repository/source"
	"github.com/messagehub/messagehub/repository/source/folder"
)

func TestSource(t *testing.T) {
	repositorytest.RunSource(t, func(t *testing.T) repositorytest.SourceStore {
		dir := t.TempDir()
		written, err := content.OpenDir(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, written.Close()) })
		store := open(t, dir)
		return repositorytest.SourceStore{
			Source: source.Stores{{Buckets: "hub", Source: store}},
			Bucket: "hub",
			Put: func(t testing.TB, key, content string) domain.VersionID {
				require.NoError(t, written.Put(t.Context(), key, strings.NewReader(content)))
				return domain.VersionID{}
			},
			Delete: func(t testing.TB, key string, _ *domain.VersionID) {
				require.NoError(t, written.Delete(t.Context(), key))
			},
		}
	})
}

func open(t *testing.T, dir string) *folder.Store {
	t.Helper()
	store, err := folder.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// The folder contains files that are not objects, and links that lead out of the folder. They are not
// listed.
func TestListHasOnlyObjects(t *testing.T) {
	dir := t.TempDir()
	written, err := content.OpenDir(dir)
	require.NoError(t, err)
	require.NoError(t, written.Put(t.Context(), "a/b", strings.NewReader("x")))
	require.NoError(t, written.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "+unfinished", "x="), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "+format"), []byte("1"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "readme"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "link=")))
	store := open(t, dir)
	page, err := store.List(t.Context(), "hub", "", "", 10)
	require.NoError(t, err)
	require.Len(t, page.Objects, 1)
	require.Equal(t, "a/b", page.Objects[0].Key)
	name, err := domain.ParseObjectName("hub", "link")
	require.NoError(t, err)
	_, err = store.Stat(t.Context(), name, nil)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

func TestAMissingFolderIsUnavailable(t *testing.T) {
	_, err := folder.Open(filepath.Join(t.TempDir(), "none"))
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
}

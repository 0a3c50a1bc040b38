package datafolder_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

func TestMake_SyncsEveryFolderWithANewName(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "a", "b")
	var synced []string
	record := func(dir string) error {
		synced = append(synced, dir)
		return nil
	}
	require.NoError(t, datafolder.MakeOn(dir+"/", record))
	require.Equal(t, []string{base, filepath.Join(base, "a")}, synced)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.True(t, info.IsDir())
	require.Equal(t, datafolder.PrivateFolder, info.Mode().Perm())

	synced = nil
	require.NoError(t, datafolder.MakeOn(dir, record))
	require.Empty(t, synced, "it was there")
	require.NoError(t, datafolder.Make(filepath.Join(dir, "c", "d")))
	require.DirExists(t, filepath.Join(dir, "c", "d"))
}

func TestMake_FailsIfAFolderCannotBeSynced(t *testing.T) {
	failure := errors.New("input/output error")
	err := datafolder.MakeOn(filepath.Join(t.TempDir(), "a", "b"), func(string) error { return failure })
	require.ErrorIs(t, err, failure)
}

func TestMake_FailsIfTheNameIsTaken(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink("nowhere", link))
	require.ErrorIs(t, datafolder.Make(file), syscall.ENOTDIR)
	require.ErrorIs(t, datafolder.Make(filepath.Join(file, "a")), syscall.ENOTDIR)
	require.ErrorIs(t, datafolder.Make(link), os.ErrExist, "a link that leads nowhere")
}

func TestSync_FailsWithoutTheFolder(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	require.NoError(t, datafolder.Sync(dir))
	require.NoError(t, datafolder.SyncIn(root, "."))
	require.ErrorIs(t, datafolder.Sync(filepath.Join(dir, "none")), os.ErrNotExist)
	require.ErrorIs(t, datafolder.SyncIn(root, "none"), os.ErrNotExist)
}

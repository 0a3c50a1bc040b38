//go:build unix

package datafolder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

func TestLock_HoldsUntilTheFileIsClosed(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	first, err := datafolder.Lock(root, "lock")
	require.NoError(t, err)
	info, err := root.Stat("lock")
	require.NoError(t, err)
	require.Equal(t, datafolder.PrivateFile, info.Mode().Perm())
	_, err = datafolder.Lock(root, "lock")
	require.ErrorIs(t, err, datafolder.ErrLocked)
	other, err := datafolder.Lock(root, "other")
	require.NoError(t, err, "each file has a lock of its own")
	require.NoError(t, other.Close())
	require.NoError(t, first.Close())
	first, err = datafolder.Lock(root, "lock")
	require.NoError(t, err)
	require.NoError(t, first.Close())
}

// A lock must be released even if a child process has inherited the file: a process that is being started has the open
// files of its parent until it executes its program.
func TestLock_IsReleasedWhileAnotherProcessHasTheFile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	for range 50 {
		lock, err := datafolder.Lock(root, "lock")
		require.NoError(t, err)
		started := make(chan error, 1)
		go func() { started <- exec.CommandContext(t.Context(), "true").Run() }()
		require.NoError(t, lock.Close())
		lock, err = datafolder.Lock(root, "lock")
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		require.NoError(t, <-started)
	}
}

func TestLock_FollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	require.NoError(t, os.Symlink("target", filepath.Join(dir, "lock")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, root.Close()) }()
	for _, name := range []string{"lock", "folder"} {
		_, err = datafolder.Lock(root, name)
		require.ErrorContains(t, err, name+" is a link, or no file")
	}
}

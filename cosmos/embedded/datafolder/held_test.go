package datafolder_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

func openRoot(t *testing.T, files ...string) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return root, dir
}

// visitAll returns the names and contents of the files that a Hold visits. It calls meanwhile during the first visit.
func visitAll(t *testing.T, h *datafolder.Hold, meanwhile func()) map[string]string {
	t.Helper()
	files := make(map[string]string)
	require.NoError(t, h.Each([]string{"+draft"}, func(name string, file *os.File, info fs.FileInfo) error {
		if meanwhile != nil {
			meanwhile()
			meanwhile = nil
		}
		text, err := io.ReadAll(file)
		require.Len(t, text, int(info.Size()))
		files[name] = string(text)
		return err
	}))
	return files
}

func TestHold_VisitsRemovedFiles(t *testing.T) {
	root, dir := openRoot(t, "a", "b", "c/d", "c/e/f", "g/h", "+draft/x", "i")
	var r datafolder.Remover
	h, err := r.Hold(root)
	require.NoError(t, err)
	_, err = r.Hold(root)
	require.ErrorIs(t, err, datafolder.ErrHeld)
	require.NoError(t, r.Remove("a", root.Remove))
	require.ErrorIs(t, r.Remove("a", root.Remove), fs.ErrNotExist)
	require.NoFileExists(t, filepath.Join(dir, "a"))
	files := visitAll(t, h, func() { // this function runs during the first visit
		require.NoError(t, r.Remove("c", root.RemoveAll))
		require.NoError(t, r.Remove("g/h", root.Remove))
		require.NoError(t, r.Remove("b", root.Remove))
	})
	require.Equal(t, map[string]string{"a": "a", "b": "b", "c/d": "c/d", "c/e/f": "c/e/f", "g/h": "g/h", "i": "i"}, files)
	require.NoError(t, h.Release())
	require.NoDirExists(t, filepath.Join(dir, datafolder.HeldFolder))
	require.NoError(t, r.Remove("i", root.Remove))
	require.NoFileExists(t, filepath.Join(dir, "i"))
	h, err = r.Hold(root)
	require.NoError(t, err)
	require.Empty(t, visitAll(t, h, nil))
	require.NoError(t, h.Release())
}

func TestCleanHeld_RemovesTheFilesOfACrashedHold(t *testing.T) {
	root, dir := openRoot(t, "a", datafolder.HeldFolder+"/0")
	var r datafolder.Remover
	h, err := r.Hold(root)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "a"}, visitAll(t, h, nil))
	require.NoError(t, datafolder.CleanHeld(root))
	require.NoDirExists(t, filepath.Join(dir, datafolder.HeldFolder))
}

func TestHold_RefusesLinks(t *testing.T) {
	root, dir := openRoot(t, "a")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "b")))
	h, err := new(datafolder.Remover).Hold(root)
	require.NoError(t, err)
	require.ErrorContains(t, h.Each(nil, func(string, *os.File, fs.FileInfo) error { return nil }), "b is a link")
}

package record_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/record"
)

func TestWriteFile_ReplacesTheWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "results.md")
	require.NoError(t, record.WriteFile(path, []byte("first")))
	require.NoError(t, record.WriteFile(path, []byte("second")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(text))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing else is left in the folder")
}

func TestWriteFile_LeavesNothingAfterAnError(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "results.md")
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Error(t, record.WriteFile(path, []byte("text")), "a folder is in its place")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestCommit_IsUnknownOutsideARepository(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(t.TempDir()))
	require.Equal(t, "unknown", record.Commit(t.Context()))
	require.Regexp(t, `[1-9][0-9]* cores, [a-z0-9]+/[a-z0-9]+$`, record.Machine())
}

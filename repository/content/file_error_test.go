package content

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// The test creates the errors of the file system itself, because tests may run as a user with all
// permissions and cannot fill a disk.
func TestFileErrors_SayWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		cause error
		kind  domain.Kind
		says  string
	}{
		{syscall.ENOSPC, domain.Unavailable, "free some space"},
		{syscall.EDQUOT, domain.Unavailable, "free some space"},
		{syscall.EROFS, domain.Unavailable, "read-only"},
		{syscall.EACCES, domain.Unavailable, "change its owner or its mode"},
		{syscall.EMFILE, domain.Busy, "too many files"},
		{syscall.EIO, domain.Unknown, "input/output error"},
	} {
		for _, err := range []error{
			&fs.PathError{Op: "open", Path: "x", Err: tc.cause},
			&os.LinkError{Op: "link", Old: "x", New: "y", Err: tc.cause},
			errors.Join(&fs.PathError{Op: "sync", Path: "x", Err: tc.cause}, errors.New("more")),
		} {
			got := classifyFileError(err)
			require.Equal(t, tc.kind, domain.KindOf(got), "%v", got)
			require.ErrorContains(t, got, tc.says)
			require.ErrorIs(t, got, tc.cause)
		}
	}
	require.NoError(t, classifyFileError(nil))
}

func TestFileWriter_ReportsAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	_, err = fileWriter{full}.Write([]byte("x"))
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.ErrorContains(t, err, "free some space")
}

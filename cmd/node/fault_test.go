package node

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnUnusableDataFolder_IsNamedWithItsRemedy(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOSPC:       "the disk is full; free some space, or choose another folder with --data",
		syscall.EDQUOT:       "the disk is full; free some space, or choose another folder with --data",
		syscall.EROFS:        "the file system is read-only; make it writable, or choose another folder with --data",
		syscall.EACCES:       "this user may not write there; change its owner or its mode, or choose another folder with --data",
		syscall.ENOTDIR:      "it is not a folder, or not in one; choose another with --data",
		fs.ErrExist:          "it is not a folder, or not in one; choose another with --data",
		fmt.Errorf("odd"):    "look at its owner, its mode and its disk, or choose another with --data",
		syscall.ENAMETOOLONG: "look at its owner, its mode and its disk, or choose another with --data",
	} {
		require.EqualError(t, folderFault("/d", fmt.Errorf("open: %w", err)), fmt.Sprintf("data folder /d: %s (open: %v)", want, err))
	}
}

func TestReachableAddress_IsUsableOnThisMachine(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:80": "127.0.0.1:80",
		"0.0.0.0:80":   "127.0.0.1:80",
		"[::]:80":      "[::1]:80",
		"[fe80::1]:80": "[fe80::1]:80",
	} {
		require.Equal(t, want, reachableAddress(addr))
	}
}

//go:build unix

package node

import "io/fs"

// isOpenToOthers reports whether the mode of a file lets other users read or write it.
func isOpenToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

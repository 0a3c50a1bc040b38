//go:build !unix

package node

import "io/fs"

// isOpenToOthers reports false: modes do not say here who may read a file.
func isOpenToOthers(fs.FileInfo) bool { return false }

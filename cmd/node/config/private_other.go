//go:build !unix

package config

import "io/fs"

// IsOpenToOthers returns false, because modes do not show here who may read a
// file.
func IsOpenToOthers(fs.FileInfo) bool { return false }

func areSettingsOpen(fs.FileInfo) bool { return false }

//go:build !unix

package config

import "io/fs"

// IsOpenToOthers returns false, because on this system a file's mode does not
// say who may read it.
func IsOpenToOthers(fs.FileInfo) bool { return false }

func areSettingsOpen(fs.FileInfo) bool { return false }

//go:build !unix

package config

import "io/fs"

// IsOpenToOthers reports false: modes do not say here who may read a file.
func IsOpenToOthers(fs.FileInfo) bool { return false }

func areSettingsOpen(fs.FileInfo) bool { return false }

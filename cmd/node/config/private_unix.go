//go:build unix

package config

import "io/fs"

// IsOpenToOthers reports whether the mode of a file permits other users to read or write it.
func IsOpenToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// areSettingsOpen is like IsOpenToOthers, but for a file with settings, which
// the file's group may read. Administrators use this mode for settings that a
// service may read, but not change.
func areSettingsOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o037 != 0 }

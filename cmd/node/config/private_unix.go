//go:build unix

package config

import "io/fs"

// IsOpenToOthers reports whether the mode of a file permits access by other
// users.
func IsOpenToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// areSettingsOpen is like IsOpenToOthers, but permits a file's group to read
// it. Administrators use this mode for settings that a service may read, but
// not change.
func areSettingsOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o037 != 0 }

//go:build unix

package config

import "io/fs"

// IsOpenToOthers reports whether the mode of a file lets other users read or write it.
func IsOpenToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// areSettingsOpen reports the same for a file of settings, which its group may
// read: that is how an administrator gives a service settings that it must not
// change.
func areSettingsOpen(info fs.FileInfo) bool { return info.Mode().Perm()&0o037 != 0 }

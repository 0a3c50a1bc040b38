//go:build !unix

package datafolder

import "os"

// CanLock tells whether Lock excludes other processes on this system.
const CanLock = false

// tryLock does nothing, because this system has no flock.
func tryLock(*os.File) error { return nil }

func releaseLock(*os.File) error { return nil }

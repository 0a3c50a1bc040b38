//go:build !unix

package datafolder

import "os"

// tryLock does nothing, because this system has no flock.
func tryLock(*os.File) error { return nil }

func releaseLock(*os.File) error { return nil }

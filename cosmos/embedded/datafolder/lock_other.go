//go:build !unix

package datafolder

import "os"

// tryLock does nothing, because these systems have no flock.
func tryLock(*os.File) error { return nil }

func releaseLock(*os.File) error { return nil }

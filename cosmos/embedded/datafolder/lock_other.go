//go:build !unix

package datafolder

import "os"

// tryLock does nothing: these systems lock files in other ways.
func tryLock(*os.File) error { return nil }

func releaseLock(*os.File) error { return nil }

//go:build !race

package cosmos

import (
	"testing"

	"github.com/messagehub/messagehub/repository/repositorytest"
)

const raced = false

// With the race detector, the suite on disk would execute the same lines of this package as the suite
// in memory: they differ below the engine, which has its own tests.
//
// Here the suite runs the rules about stored data and about concurrent calls, and in make campaign all
// of them.
func TestConformanceOnDisk(t *testing.T) {
	t.Parallel() // it waits for the disk
	if triesEveryCase {
		repositorytest.Run(t, openOn(true, true, 0))
		return
	}
	repositorytest.RunOnly(t, openOn(true, true, 0), "Save", "Bundle")
}

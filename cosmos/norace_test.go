//go:build !race

package cosmos

import (
	"testing"

	"github.com/messagehub/messagehub/repository/repositorytest"
)

const raced = false

// This test does not run with the race detector: on disk and in memory, the suite executes the same lines
// of this package. Only the storage below the engine differs, and has its own tests.
//
// The test runs the rules about stored data and about concurrent calls; make campaign runs all rules.
func TestConformanceOnDisk(t *testing.T) {
	t.Parallel() // the suite waits for the disk
	if triesEveryCase {
		repositorytest.Run(t, openOn(true, true, 0))
		return
	}
	repositorytest.RunOnly(t, openOn(true, true, 0), "Save", "Bundle")
}

//go:build !race

package cosmos

import (
	"testing"

	"github.com/messagehub/messagehub/repository/repositorytest"
)

const raced = false

// The race detector sees no more of the suite on disk than of the one in memory: what
// differs is below the engine, which has tests of its own.
//
// Here it runs the rules about what is stored and about concurrent calls, and in make campaign all of them.
func TestConformanceOnDisk(t *testing.T) {
	t.Parallel() // it waits for the disk
	if triesEveryCase {
		repositorytest.Run(t, openOn(true, true, 0))
		return
	}
	repositorytest.RunOnly(t, openOn(true, true, 0), "Save", "Bundle")
}

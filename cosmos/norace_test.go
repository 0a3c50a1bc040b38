//go:build !race

package cosmos

import (
	"testing"

	"github.com/messagehub/messagehub/repository/repositorytest"
)

const raced = false

// The race detector sees no more of the suite on disk than of the one in memory: what
// differs is below the engine, which has tests of its own.
func TestConformanceOnDisk(t *testing.T) {
	t.Parallel() // it waits for the disk
	repositorytest.Run(t, openOn(true, true, 0))
}

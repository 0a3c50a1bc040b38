//go:build !race

package push

import "testing"

const raced = false

// The race detector would find nothing further here: the test on an account with strong consistency
// executes the same lines.
func TestConformanceOnASessionAccount(t *testing.T) { conformance(t, "Session", Options{}) }

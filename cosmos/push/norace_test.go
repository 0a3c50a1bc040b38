//go:build !race

package push

import "testing"

const raced = false

// With the race detector, this test is omitted: the test on an account with strong consistency executes
// the same lines.
func TestConformanceOnASessionAccount(t *testing.T) { conformance(t, "Session", Options{}) }

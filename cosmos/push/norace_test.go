//go:build !race

package push

import "testing"

const raced = false

// With the race detector this test would execute the same lines as the one on an account with strong
// consistency.
func TestConformanceOnASessionAccount(t *testing.T) { conformance(t, "Session", Options{}) }

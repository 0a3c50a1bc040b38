//go:build !race

package push

import "testing"

const raced = false

// The race detector sees the same lines run as on an account with strong consistency.
func TestConformanceOnASessionAccount(t *testing.T) { conformance(t, "Session", Options{}) }

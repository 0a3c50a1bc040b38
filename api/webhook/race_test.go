//go:build race

package webhook_test

// hasRaceDetector reports whether the race detector is enabled. If it is, slow tests do less.
const hasRaceDetector = true

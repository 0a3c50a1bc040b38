//go:build race

package filter

// hasRaceDetector is set if the race detector is active, which makes tests many times slower.
const hasRaceDetector = true

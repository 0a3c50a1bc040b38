//go:build race

package webhook_test

// hasRaceDetector is true in a build with the race detector, in which slow tests do less.
const hasRaceDetector = true

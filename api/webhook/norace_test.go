//go:build !race

package webhook_test

const hasRaceDetector = false

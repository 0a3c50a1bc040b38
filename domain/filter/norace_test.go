//go:build !race

package filter

const hasRaceDetector = false

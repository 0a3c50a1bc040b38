package scheduler

// SeedChoices makes the Go runtime repeat its choices; see package seeded. Without the build tag
// seeded it does nothing.
func SeedChoices(seed uint64) { seedChoices(seed) }

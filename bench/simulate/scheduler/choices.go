package scheduler

// SeedChoices makes the choices of the Go runtime repeatable; see package seeded. Without the build
// tag seeded, SeedChoices does nothing.
func SeedChoices(seed uint64) { seedChoices(seed) }

//go:build seeded

// It is here so that a function may be declared without a body.

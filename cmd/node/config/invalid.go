package config

// An InvalidError says that settings cannot be used as they are. It wraps one fault, or several that are joined; see
// [Faults].
type InvalidError struct{ Err error }

// Error returns the faults, one a line.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the faults.
func (e *InvalidError) Unwrap() error { return e.Err }

package config

// An InvalidError reports invalid settings. It wraps one fault or several
// joined faults, which [Faults] returns.
type InvalidError struct{ Err error }

// Error returns the faults, one per line.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the faults.
func (e *InvalidError) Unwrap() error { return e.Err }

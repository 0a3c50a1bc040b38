// Package doctor runs checks of an installation, and reports for each check
// whether the installation is in order and, if not, what to do next. The package
// contains the types and runs the checks in order; package node defines the
// checks.
//
// A [Check] may need other checks. It runs after these have ended without a
// fault, and concurrently with all other checks. If a check that it needs has a
// fault, it is reported as not checked, and the report names the check with the
// fault. Findings are in the order of the table, regardless of the order in
// which the checks end.
//
// Each check has a time limit, and all checks together have another, so that
// [Run] returns in time if a network or a disk hangs. A check that does not
// return after its context has ended is reported, and its goroutine is
// abandoned, because a system call on a hanging disk cannot be interrupted. Run
// waits for all other goroutines.
//
// The package reads no configuration, makes no requests and stores nothing. Each
// check documents what it leaves behind if it is interrupted.
package doctor

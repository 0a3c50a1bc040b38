// Package doctor runs checks of an installation. For each check it reports
// whether the installation is in order and, if not, what to do next. The
// package contains the types and runs the checks; package node defines the
// checks.
//
// A [Check] may need other checks. It runs after they have ended without a
// fault, and concurrently with all remaining checks. If a needed check has a
// fault, the check is reported as not checked, and the report names the needed
// check. Findings are in the order of the table, regardless of the order in
// which the checks end.
//
// Each check has a time limit, and all checks together have another, so that
// [Run] returns in time even if a network or a disk hangs. If a check does not
// return after its context has ended, the check is reported and its goroutine
// abandoned, because a system call on a hanging disk cannot be interrupted. Run
// waits for all other goroutines.
//
// The package reads no configuration, makes no requests and stores nothing.
// Each check documents what it leaves behind if it is interrupted.
package doctor

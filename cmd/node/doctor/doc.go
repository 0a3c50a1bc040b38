// Package doctor runs checks of an installation and reports what they find: for each thing whether
// it is in order, and if not, what to do next. It has the types and the order of the checks; which
// checks there are is the business of package node.
//
// A [Check] may need others. It runs once these have ended without a fault, and beside all checks that
// it does not need. If one of them has a fault, it is reported as not checked, with the name of the
// check that has the fault. Findings are in the order of the table, whatever the order in which the
// checks end.
//
// Each check has a time limit, and all checks have one together, so that [Run] returns in time if a
// network or a disk hangs. A check that does not return although its context has ended is reported and
// left behind: a system call on a disk that hangs cannot be interrupted. That is the one goroutine for
// which Run does not wait.
//
// The package reads no configuration, makes no request and stores nothing. What a check leaves behind
// when it is interrupted is documented with the check.
package doctor

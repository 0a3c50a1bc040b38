// Package doctor runs checks of an installation and reports what they find: for
// each thing whether it is in order, and if not, what to do next. It has the
// types and the order of the checks; package node defines the checks
// themselves.
//
// A [Check] may need others. It runs once these have ended without a fault,
// concurrently with all checks that it does not need. If one of them has a
// fault, it is reported as not checked, with the name of the check that has the
// fault. Findings are in the order of the table, whatever the order in which
// the checks end.
//
// Each check has a time limit, and all checks together have one, so that [Run]
// returns in time if a network or a disk hangs. A check that does not return
// although its context has ended is reported, and its goroutine is abandoned: a
// system call on a disk that hangs cannot be interrupted. It is the only
// goroutine for which Run does not wait.
//
// The package reads no configuration, makes no request and stores nothing. Each
// check documents what it leaves behind when it is interrupted.
package doctor

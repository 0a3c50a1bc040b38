// Package terminal contains what the hub's command-line programs share: a status
// line, text that fits into a line and contains no control characters, quoting
// for a POSIX shell, and the handling of Ctrl-C.
//
// It is independent of the hub. The command messagehub and the programs below
// bench use it.
package terminal

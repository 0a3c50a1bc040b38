// Package terminal has what our programs share for use at a terminal: a status
// line, text that fits a line and contains no control characters, words for a
// POSIX shell, and the end at Ctrl-C.
//
// It does not know the hub. The command messagehub and the programs below bench
// use it.
package terminal

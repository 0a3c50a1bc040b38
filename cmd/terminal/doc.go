// Package terminal is what our programs have in common that a person uses at a
// terminal: a status line, text that fits a line and steers no terminal, words for a
// POSIX shell, and the end at Ctrl-C.
//
// It knows no hub. The command messagehub and the programs below bench use it.
package terminal

package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// A statusLine is a line on a terminal that changes.
type statusLine struct {
	w        io.Writer
	terminal bool // a person watches w; if not, nothing is drawn
	drawn    bool
}

func newStatusLine(w io.Writer) statusLine { return statusLine{w: w, terminal: onTerminal(w)} }

const clearLine = "\r\x1b[K"

// draw shows a text in place of the one before.
func (l *statusLine) draw(text string) {
	l.drawn = true
	fmt.Fprint(l.w, clearLine+text)
}

// clear removes the line.
func (l *statusLine) clear() {
	if l.drawn {
		l.drawn = false
		fmt.Fprint(l.w, clearLine)
	}
}

// columns is how wide the terminal is: what is longer than that cannot be removed.
func (l *statusLine) columns() int {
	if f, ok := l.w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

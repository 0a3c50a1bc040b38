package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A StatusLine is a line on a terminal whose text can be replaced.
type StatusLine struct {
	io.Writer
	Watched bool // true if the writer is a terminal; only then should the caller call Draw
	drawn   bool
}

// NewStatusLine returns a status line on w. The line is empty until Draw is
// called.
func NewStatusLine(w io.Writer) StatusLine { return StatusLine{Writer: w, Watched: IsTerminal(w)} }

// ClearLine is the terminal sequence that clears the line of the cursor.
const ClearLine = "\r\x1b[K"

// Draw replaces the text of the line. The text must have at most Columns
// characters, because Clear cannot remove a text that wraps.
func (l *StatusLine) Draw(text string) {
	l.drawn = true
	fmt.Fprint(l.Writer, ClearLine+text)
}

// Clear removes the text of the line.
func (l *StatusLine) Clear() {
	if l.drawn {
		l.drawn = false
		fmt.Fprint(l.Writer, ClearLine)
	}
}

// Columns returns the width of the terminal in characters.
func (l *StatusLine) Columns() int {
	if f, ok := l.Writer.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

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

// A StatusLine is a line on a terminal that changes.
type StatusLine struct {
	io.Writer
	Watched bool // the writer is a terminal; a caller draws only then
	drawn   bool
}

// NewStatusLine returns a status line on w, which is empty until Draw.
func NewStatusLine(w io.Writer) StatusLine { return StatusLine{Writer: w, Watched: IsTerminal(w)} }

// ClearLine is the sequence that removes the line of the cursor.
const ClearLine = "\r\x1b[K"

// Draw replaces the text of the line.
func (l *StatusLine) Draw(text string) {
	l.drawn = true
	fmt.Fprint(l.Writer, ClearLine+text)
}

// Clear removes the line.
func (l *StatusLine) Clear() {
	if l.drawn {
		l.drawn = false
		fmt.Fprint(l.Writer, ClearLine)
	}
}

// Columns returns the width of the terminal. A longer text could not be
// removed.
func (l *StatusLine) Columns() int {
	if f, ok := l.Writer.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

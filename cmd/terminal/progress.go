package terminal

import (
	"fmt"
	"io"
	"strings"
)

// A Progress shows how many events a long command has processed. On a terminal
// it draws a bar; otherwise it prints a line for every 10,000 events. It must be
// used by one goroutine only.
type Progress struct {
	StatusLine
	total    int64 // number of bytes or events; 0 or less if not known
	done     int64
	inBytes  bool
	barWord  string // word before the bar, such as "sending"
	lineWord string // first word of a plain line, such as "sent"
	events   int
	printed  int // number of events that the last plain line shows
}

// linesEvery is the number of events between two plain lines.
const linesEvery = 10_000

// NewByteProgress returns the progress of sending an input of size bytes. size
// is -1 if it is not known.
func NewByteProgress(w io.Writer, size int64) *Progress {
	return &Progress{StatusLine: NewStatusLine(w), total: size, inBytes: true, barWord: "sending", lineWord: "sent"}
}

// NewEventProgress returns the progress of processing total events. done is the
// word for a processed event, such as "sent".
func NewEventProgress(w io.Writer, done string, total int) *Progress {
	return &Progress{StatusLine: NewStatusLine(w), total: int64(total), barWord: done, lineWord: done}
}

// Add adds processed events, and the bytes of the input that contained them.
func (p *Progress) Add(events int, bytes int64) {
	p.events += events
	if p.inBytes {
		p.done += bytes
	} else {
		p.done += int64(events)
	}
	switch {
	case p.Watched:
		p.Draw(p.barLine())
	case p.events-p.printed >= linesEvery:
		p.printed = p.events
		fmt.Fprintf(p, "%s %d events\n", p.lineWord, p.events)
	}
}

// Printf prints a line above the bar.
func (p *Progress) Printf(format string, args ...any) {
	p.Clear()
	fmt.Fprintf(p, format+"\n", args...)
}

// barLine returns a line with barWord, the bar and the numbers. If the total is
// not known, it contains no bar.
func (p *Progress) barLine() string {
	const width = 30
	line := p.barWord
	if p.total > 0 {
		share := min(float64(p.done)/float64(p.total), 1)
		full := int(share * width)
		line += fmt.Sprintf(" %3d %% %s%s", int(100*share), strings.Repeat("█", full), strings.Repeat("░", width-full))
	}
	switch {
	case p.inBytes && p.total > 0:
		line += fmt.Sprintf(" %.1f of %.1f MB", inMegabytes(p.done), inMegabytes(p.total))
	case p.inBytes:
		line += fmt.Sprintf(" %.1f MB", inMegabytes(p.done))
	default:
		line += fmt.Sprintf(" %d of %d", p.done, p.total)
	}
	return Clip(line, p.Columns()-1)
}

func inMegabytes(n int64) float64 { return float64(n) / (1 << 20) }

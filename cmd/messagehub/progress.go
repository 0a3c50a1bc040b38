package main

import (
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"

	"github.com/messagehub/messagehub/cmd/terminal"
)

// A progress tells how far a long command has come: a bar for a person at a
// terminal, a plain line now and then for everything else.
type progress struct {
	w      io.Writer
	bar    *progressbar.ProgressBar // nil: plain lines
	inByte bool                     // the bar counts bytes
	what   string
	events int
	told   int
}

// linesEvery is how many events pass from one plain line to the next.
const linesEvery = 10_000

// newProgress tells of events that are sent from an input of size bytes, which
// is -1 if not known.
func newProgress(w io.Writer, size int64) *progress {
	p := &progress{w: w, what: "sent", inByte: true}
	if terminal.IsTerminal(w) {
		p.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true),
			progressbar.OptionSetDescription("sending"), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30))
	}
	return p
}

// newCount tells of a known number of events.
func newCount(w io.Writer, what string, total int) *progress {
	p := &progress{w: w, what: what}
	if terminal.IsTerminal(w) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(w), progressbar.OptionShowCount(),
			progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30))
	}
	return p
}

// add tells of some more events. It must not be called twice at once.
func (p *progress) add(events int, bytes int64) {
	p.events += events
	switch {
	case p.bar != nil && p.inByte:
		_ = p.bar.Add64(bytes) // a bar that cannot be drawn does no harm
	case p.bar != nil:
		_ = p.bar.Add(events)
	case p.events-p.told >= linesEvery:
		p.told = p.events
		fmt.Fprintf(p.w, "%s %d events\n", p.what, p.events)
	}
}

// say prints a line above the bar.
func (p *progress) say(format string, args ...any) {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.w, format+"\n", args...)
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// every is how often a line is written where there is no terminal.
const every = 10 * time.Second

// A progress tells how far a campaign is: on a terminal in one line that it writes
// anew, else in a line every now and then.
type progress struct {
	to       io.Writer
	terminal bool
	width    func() int // of the terminal

	began, last  time.Time
	seeds, twice uint64 // at the beginning
	steps        int64
}

func newProgress(to *os.File) *progress {
	fd := int(to.Fd())
	return &progress{to: to, terminal: term.IsTerminal(fd), width: func() int {
		columns, _, err := term.GetSize(fd)
		if err != nil {
			return 80
		}
		return columns
	}}
}

// tell writes how far it is, if it is time to.
func (p *progress) tell(now time.Time, s *state, failed int, left uint64) {
	if p.began.IsZero() {
		p.began, p.last, p.seeds, p.steps = now, now, s.Seeds.count(), s.Steps
	}
	if twice := s.Twice.count(); twice != p.twice { // which is no part of the steps
		p.began, p.twice = now, twice
	}
	if !p.terminal && now.Sub(p.last) < every {
		return
	}
	p.last = now
	line := p.line(now, s, failed, left)
	if !p.terminal {
		_, _ = fmt.Fprintln(p.to, line)
		return
	}
	if wide := p.width(); len(line) >= wide {
		line = line[:max(wide-1, 0)]
	}
	_, _ = fmt.Fprint(p.to, "\r", line, "\x1b[K")
}

func (p *progress) line(now time.Time, s *state, failed int, left uint64) string {
	spent := now.Sub(p.began)
	perSecond, eta := 0.0, "unknown"
	if spent > 0 {
		perSecond = float64(s.Steps-p.steps) / spent.Seconds()
	}
	if seeds := s.Seeds.count() - p.seeds; seeds > 0 {
		eta = time.Duration(float64(spent) / float64(seeds) * float64(left)).Round(time.Second).String()
	}
	line := ""
	if s.Seeds.count() == 0 && p.twice > 0 {
		line = fmt.Sprintf("%d seeds twice, ", p.twice)
	}
	line += fmt.Sprintf("%d seeds, %d steps, %.1f %% faulted, %.0f steps/s, %d failed, %s to go",
		s.Seeds.count(), s.Steps, percent(s.Faulted, s.Steps), perSecond, failed, eta)
	if names := s.rarest(); len(names) > 0 {
		reached := 0
		for _, n := range s.Sometimes {
			if n > 0 {
				reached++
			}
		}
		line += fmt.Sprintf("; rare states %d/%d, least %q %d", reached, len(names), names[0], s.Sometimes[names[0]])
	}
	return line
}

// say writes a line of its own.
func (p *progress) say(line string) {
	if p.terminal {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
	_, _ = fmt.Fprintln(p.to, line)
}

// end leaves the last line as it is.
func (p *progress) end() {
	if p.terminal {
		_, _ = fmt.Fprintln(p.to)
	}
}

func percent(part, of int64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(part) / float64(of)
}

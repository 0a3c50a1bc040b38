package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// lineInterval is the time between two lines of progress if the output is not a terminal.
const lineInterval = 10 * time.Second

// A progressLine shows the progress of a campaign. On a terminal it overwrites one line; otherwise it prints a line
// every lineInterval.
type progressLine struct {
	to       io.Writer
	terminal bool
	width    func() int // width of the terminal

	began, last  time.Time
	seeds, twice uint64 // counts at the beginning of this run
	steps        int64
}

func newProgress(to *os.File) *progressLine {
	fd := int(to.Fd())
	return &progressLine{to: to, terminal: term.IsTerminal(fd), width: func() int {
		columns, _, err := term.GetSize(fd)
		if err != nil {
			return 80
		}
		return columns
	}}
}

// showIfDue shows the progress if enough time has passed.
func (p *progressLine) showIfDue(now time.Time, s *campaignState, failed int, left uint64) {
	if p.began.IsZero() {
		p.began, p.last, p.seeds, p.steps = now, now, s.Seeds.countSeeds(), s.Steps
	}
	if twice := s.Twice.countSeeds(); twice != p.twice { // Steps does not include the second pass
		p.began, p.twice = now, twice
	}
	if !p.terminal && now.Sub(p.last) < lineInterval {
		return
	}
	p.last = now
	line := p.formatLine(now, s, failed, left)
	if !p.terminal {
		_, _ = fmt.Fprintln(p.to, line)
		return
	}
	if wide := p.width(); len(line) >= wide {
		line = line[:max(wide-1, 0)]
	}
	_, _ = fmt.Fprint(p.to, "\r", line, "\x1b[K")
}

func (p *progressLine) formatLine(now time.Time, s *campaignState, failed int, left uint64) string {
	spent := now.Sub(p.began)
	perSecond, eta := 0.0, "unknown"
	if spent > 0 {
		perSecond = float64(s.Steps-p.steps) / spent.Seconds()
	}
	if seeds := s.Seeds.countSeeds() - p.seeds; seeds > 0 {
		eta = time.Duration(float64(spent) / float64(seeds) * float64(left)).Round(time.Second).String()
	}
	line := ""
	if s.Seeds.countSeeds() == 0 && p.twice > 0 {
		line = fmt.Sprintf("%d seeds twice, ", p.twice)
	}
	line += fmt.Sprintf("%d seeds, %d steps, %.1f %% faulted, %.0f steps/s, %d failed, %s to go",
		s.Seeds.countSeeds(), s.Steps, percentOf(s.Faulted, s.Steps), perSecond, failed, eta)
	if names := s.rarestStates(); len(names) > 0 {
		reached := 0
		for _, n := range s.Coverage {
			if n > 0 {
				reached++
			}
		}
		line += fmt.Sprintf("; rare states %d/%d, least %q %d", reached, len(names), names[0], s.Coverage[names[0]])
	}
	return line
}

// printLine prints a separate line.
func (p *progressLine) printLine(line string) {
	if p.terminal {
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
	_, _ = fmt.Fprintln(p.to, line)
}

// endLine terminates the line of progress on a terminal.
func (p *progressLine) endLine() {
	if p.terminal {
		_, _ = fmt.Fprintln(p.to)
	}
}

func percentOf(part, of int64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(part) / float64(of)
}

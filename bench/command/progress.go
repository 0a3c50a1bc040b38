package command

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A scenarioProgress shows the progress of a run: a bar on a terminal, otherwise a line for each
// step.
type scenarioProgress struct {
	terminal.StatusLine
	of int // number of scenarios

	mu       sync.Mutex
	scenario string
	at       int // number of the current scenario, from 1
	began    time.Time
	last     bench.Progress

	over    chan struct{}
	drawing sync.WaitGroup
}

func newProgress(w io.Writer, of int) *scenarioProgress {
	return &scenarioProgress{StatusLine: terminal.NewStatusLine(w), of: of}
}

// beginScenario begins the next scenario, and returns a function that shows the scenario's
// progress. The caller then calls endScenario.
func (p *scenarioProgress) beginScenario(scenario string) func(bench.Progress) {
	p.scenario, p.began, p.last = scenario, time.Now(), bench.Progress{}
	p.at++
	p.over = make(chan struct{})
	if p.Watched {
		p.drawing.Go(p.redrawClock)
	}
	return p.reportProgress
}

// endScenario ends the scenario, and removes the bar.
func (p *scenarioProgress) endScenario() {
	close(p.over)
	p.drawing.Wait()
	p.Clear()
}

// redrawClock updates the elapsed time on the bar between reports of progress.
func (p *scenarioProgress) redrawClock() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		p.mu.Lock()
		p.Draw(p.barLine())
		p.mu.Unlock()
		select {
		case <-ticker.C:
		case <-p.over:
			return
		}
	}
}

// reportProgress may be called at any rate. The bar is redrawn when the percentage or the step
// changes.
func (p *scenarioProgress) reportProgress(now bench.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now.Step = terminal.Printable(now.Step)
	before := p.last
	p.last = now
	switch {
	case p.Watched && (now.Step != before.Step || percentOf(now) != percentOf(before)):
		p.Draw(p.barLine())
	case !p.Watched && now.Step != before.Step:
		fmt.Fprintf(p, "%s (%d of %d): %s, %d %%, %s\n", p.scenario, p.at, p.of, now.Step, percentOf(now), p.elapsedTime())
	}
}

// barLine returns one line: the scenario, a bar, the elapsed time and the current
// step.
func (p *scenarioProgress) barLine() string {
	const width = 20
	done := percentOf(p.last) * width / 100
	line := fmt.Sprintf("%s (%d of %d) %s%s %3d %% %s  %s", p.scenario, p.at, p.of,
		strings.Repeat("█", done), strings.Repeat("░", width-done), percentOf(p.last), p.elapsedTime(), p.last.Step)
	return terminal.Clip(strings.TrimRight(line, " "), p.Columns()-1)
}

func (p *scenarioProgress) elapsedTime() time.Duration { return time.Since(p.began).Round(time.Second) }

// percentOf returns a number between 0 and 100, for any reported progress.
func percentOf(p bench.Progress) int {
	if math.IsNaN(p.Done) {
		return 0
	}
	return int(100*min(max(p.Done, 0), 1) + 1e-9) // a small addition, because 100 times 0.58 is less than 58 in floating point
}

package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/record"
)

// The requirements for a recorded campaign.
const (
	wantSeeds     = 50_000
	wantSteps     = 10_000_000
	wantFaulted   = 5 // minimum percentage of steps with a fault
	wantTwice     = 1_000
	wantHistories = 20_000
	wantRare      = 100
)

// writeReport writes the results to path. An empty path does nothing.
func (s *campaignState) writeReport(path string) error {
	if path == "" {
		return nil
	}
	return record.WriteFile(path, []byte(s.formatReport()))
}

func (s *campaignState) formatReport() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# The long campaign\n")
	say("Written by `go run ./bench/simulate/prove`; do not edit.\n")
	for _, o := range s.Origins {
		say("- commit %s on %s, %s", o.Commit, o.Machine, o.Go)
	}
	say("- begun on %s; %s summed over all processes, %s elapsed", s.Began, formatSeconds(s.Seconds), formatSeconds(s.Wall))
	if len(s.Origins) > 1 {
		say("\nThe figures are the sums over these commits.")
	}
	say("\n## Totals\n\n| figure | target | measured |\n|---|---|---|")
	say("| seeds | at least %d | %d |", wantSeeds, s.Seeds.countSeeds())
	say("| steps | at least %d | %d |", wantSteps, s.Steps)
	say("| steps with a fault | at least %d %% | %.1f %% |", wantFaulted, percentOf(s.Faulted, s.Steps))
	say("| histories of one mailbox, all of them linearizable | at least %d | %d |", wantHistories, s.Histories)
	say("| seeds run twice | at least %d | %d |", wantTwice, s.Twice.countSeeds())
	say("| of these, with differing traces | 0 | %d |", len(s.Differing))
	say("| seeds that still fail | 0 | %d |", s.countFailing())
	say("| steps per second and process | | %.0f |", rateOf(s.Steps, s.Seconds))
	say("| steps per second | | %.0f |", rateOf(s.Steps, s.Wall))
	say("\nThe seeds: %s. A history that is not linearizable, or whose check reaches its limit, fails its seed.", s.Seeds)
	say("\n## Rare states\n\nThe count of each rare state; the target is at least %d.\n\n| state | times | |\n|---|---|---|", wantRare)
	for _, name := range s.rarestStates() {
		short := ""
		if s.Coverage[name] < wantRare {
			short = "too rare"
		}
		say("| %s | %d | %s |", escapeCell(name), s.Coverage[name], short)
	}
	say("\n## Failed seeds\n")
	if len(s.Failed) == 0 {
		say("None.")
	} else {
		say("| seed | commit | violation | repaired |\n|---|---|---|---|")
	}
	for _, f := range s.Failed {
		say("| %d | %s | %s | %s |", f.Seed, f.Commit, escapeCell(f.What), cmp.Or(f.Mended, "no"))
	}
	say("\n## Commands\n")
	for _, command := range s.Commands {
		say("\t%s", strings.TrimSpace(command))
	}
	return b.String()
}

// summaryLine returns the result of the campaign in one line.
func (s *campaignState) summaryLine(holds bool) string {
	verdict := "all invariants held"
	if !holds {
		verdict = "not all demands were met"
	}
	return fmt.Sprintf("%d seeds, %d steps, %d of them faulted, %d histories, %d seeds run twice with %d differing traces: %s",
		s.Seeds.countSeeds(), s.Steps, s.Faulted, s.Histories, s.Twice.countSeeds(), len(s.Differing), verdict)
}

// String lists the seeds.
func (s spans) String() string {
	texts := make([]string, len(s))
	for i, each := range s {
		texts[i] = fmt.Sprintf("%d to %d", each.From, each.endSeed()-1)
	}
	return strings.Join(texts, ", ")
}

func formatSeconds(n float64) string {
	return (time.Duration(n) * time.Second).String()
}

func rateOf(n int64, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return float64(n) / seconds
}

func escapeCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

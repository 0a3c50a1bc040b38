package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// markdownPage returns the results as a page of Markdown.
func (r *report) markdownPage() string {
	var b strings.Builder
	var took time.Duration
	states, mutations, caught := 0, 0, 0
	for _, row := range r.rows {
		took += row.result.Took
		switch row.kind {
		case scenario:
			states += row.result.States
		case mutation:
			mutations++
			if row.hasRequiredOutcome() {
				caught++
			}
		case walking:
		}
	}
	fmt.Fprintf(&b, "# The model of small Saves\n\nWritten by `make model`; do not edit.\n\n")
	fmt.Fprintf(&b, "- %d distinct states in the scenarios; %d of %d mutations caught\n", states, caught, mutations)
	fmt.Fprintf(&b, "- %s of exploring, %d at a time; %d MB of memory; %s %s/%s\n\n",
		took.Round(time.Second), parallel, r.peakMB, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	b.WriteString("The package comment describes what is modelled and checked. Depth is the length of the longest path to a\n" +
		"state, in steps. Drained is the number of distinct contents of the documents from which a fresh actor drained\n" +
		"alone, and again after a fresh writer had saved all events again. The violation of a mutation is on a shortest\n" +
		"path.\n")
	group := ""
	for _, row := range r.rows {
		if row.group != group {
			group = row.group
			fmt.Fprintf(&b, "\n## %s%s\n\n", strings.ToUpper(group[:1]), group[1:])
			b.WriteString("| scenario | states | transitions | depth | drained | seconds | outcome |\n|---|---:|---:|---:|---:|---:|---|\n")
		}
		x := &row.result
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %.1f | %s |\n",
			row.scenario.Name, x.States, x.Transitions, x.Depth, x.Drained, x.Took.Seconds(), row.outcomeText())
	}
	return b.String()
}

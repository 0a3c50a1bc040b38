package report

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
)

// A Report holds the results of a run.
type Report struct {
	Facts
	Sections []*Section
}

// Facts describe the run as a whole.
type Facts struct {
	Command string
	Commit  string
	Machine string
	Go      string // version of Go
	Began   time.Time
	Took    time.Duration
	Seed    uint64
	Quick   bool
	Where   string // description of the measured account
	Model   bool   // the account is modelled
}

// A Section holds the results of one scenario.
type Section struct {
	Scenario string
	About    string
	Figures  []figure.Figure
	Curves   []figure.Curve
	Err      error // error that ended the scenario; nil if it was completed
}

// Figures returns the figures of all sections.
func (r *Report) Figures() []figure.Figure {
	var all []figure.Figure
	for _, s := range r.Sections {
		all = append(all, s.Figures...)
	}
	return all
}

// Curves returns the curves of all sections.
func (r *Report) Curves() []figure.Curve {
	var all []figure.Curve
	for _, s := range r.Sections {
		all = append(all, s.Curves...)
	}
	return all
}

// Missed returns the figures that miss their targets.
func (r *Report) Missed() []figure.Figure {
	var missed []figure.Figure
	for _, f := range r.Figures() {
		if !f.OK {
			missed = append(missed, f)
		}
	}
	return missed
}

// Verdict returns a line with the numbers of met and missed targets.
func (r *Report) Verdict() string {
	targets := 0
	for _, f := range r.Figures() {
		if f.Target != nil {
			targets++
		}
	}
	switch missed := len(r.Missed()); {
	case targets == 0:
		return "no targets"
	case missed == 0:
		return fmt.Sprintf("all targets are met, %d of %d", targets, targets)
	default:
		return fmt.Sprintf("targets missed: %d of %d", missed, targets)
	}
}

// Origin states which figures are measured and which are modelled.
func (r *Report) Origin() string {
	modelled := 0
	figures := r.Figures()
	for _, f := range figures {
		if f.Modelled {
			modelled++
		}
	}
	switch {
	case modelled == 0 && !r.Model:
		return "All figures were measured on the account: times, requests, and charged request units."
	case modelled == len(figures):
		return "The account is a model: requests and bytes are counted, request units are charged by the model,\n" +
			"and times depend on this machine and on the latency and throttling of the model."
	default:
		return fmt.Sprintf("%d of %d figures were measured on the account: times, requests, and charged request\n"+
			"units. The others are modelled, on the embedded engine, and are marked.", len(figures)-modelled, len(figures))
	}
}

// isMixed reports whether the report may have modelled and measured figures. Modelled figures are
// marked only in such a report.
func (r *Report) isMixed() bool { return !r.Model }

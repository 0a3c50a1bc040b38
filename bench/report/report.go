package report

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
)

// A Report is what a run found.
type Report struct {
	Facts
	Sections []*Section
}

// Facts are about the run as a whole.
type Facts struct {
	Command string
	Commit  string
	Machine string
	Go      string // its version
	Began   time.Time
	Took    time.Duration
	Seed    uint64
	Quick   bool
	Where   string // what was measured: the account
	Model   bool   // that account is a model
}

// A Section is one scenario.
type Section struct {
	Scenario string
	About    string
	Figures  []figure.Figure
	Curves   []figure.Curve
	Err      error // why the scenario ended before it was complete
}

// Figures are those of all sections.
func (r *Report) Figures() []figure.Figure {
	var all []figure.Figure
	for _, s := range r.Sections {
		all = append(all, s.Figures...)
	}
	return all
}

// Curves are those of all sections.
func (r *Report) Curves() []figure.Curve {
	var all []figure.Curve
	for _, s := range r.Sections {
		all = append(all, s.Curves...)
	}
	return all
}

// Missed are the figures that miss their target.
func (r *Report) Missed() []figure.Figure {
	var missed []figure.Figure
	for _, f := range r.Figures() {
		if !f.OK {
			missed = append(missed, f)
		}
	}
	return missed
}

// Verdict says in a line how many targets were missed.
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

// Origin says which figures are measured and which are modelled.
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
		return "Everything was measured on the account: times, requests, and request units as it charged them."
	case modelled == len(figures):
		return "The account is a model: requests and bytes are counted, request units are what the model charges,\n" +
			"and times are those of this machine with the latency and the throttling of the model."
	default:
		return fmt.Sprintf("%d of %d figures were measured on the account: times, requests, and request units as it\n"+
			"charged them. The others are modelled, on the embedded engine, and say so.", len(figures)-modelled, len(figures))
	}
}

// isMixed reports whether a figure has to say that it is modelled, for others are not.
func (r *Report) isMixed() bool { return !r.Model }

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// doctorFormat is the format version of the report in JSON.
const doctorFormat = 1

// A doctorReport is the report that messagehub doctor or messagehub config
// check prints.
type doctorReport struct {
	Format       int              `json:"format"`
	Version      string           `json:"version"` // version of the program
	Online       bool             `json:"online"`
	Faults       int              `json:"faults"`
	Warnings     int              `json:"warnings"`
	NotChecked   int              `json:"notChecked"`
	Units        float64          `json:"requestUnits"`
	Milliseconds int64            `json:"milliseconds"`
	Findings     []doctor.Finding `json:"checks"`

	hasMore bool // more checks would run with --online
}

// countFindings sets the format version, and counts the findings by state.
func (r *doctorReport) countFindings() {
	of := doctor.Report{Findings: r.Findings}
	r.Format, r.Faults, r.Warnings, r.NotChecked = doctorFormat, of.Count(doctor.Fault), of.Count(doctor.Warning), of.Count(doctor.NotChecked)
}

// reportDoctor prints a report. If the report contains a fault, it returns an
// error with exit status 1.
func (p *process) reportDoctor(r *doctorReport, asJSON bool) error {
	r.countFindings()
	if asJSON {
		e := json.NewEncoder(p.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	} else {
		r.printReport(p.out, terminal.IsTerminal(p.out) && !hasVariable(p.environ, "NO_COLOR"))
	}
	if r.Faults > 0 {
		return exitError(exitFailed)
	}
	return nil
}

// hasVariable reports whether an environment variable is set and not empty.
func hasVariable(environ []string, name string) bool {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok && value != "" {
			return true
		}
	}
	return false
}

// colours contains the terminal escape sequence for each state.
var colours = map[doctor.State]string{doctor.OK: "\x1b[32m", doctor.Warning: "\x1b[33m", doctor.Fault: "\x1b[1;31m", doctor.NotChecked: "\x1b[2m"}

// printReport prints the report as text for a person.
func (r *doctorReport) printReport(w io.Writer, isColoured bool) {
	const stateWidth = len(doctor.NotChecked)
	nameWidth := 0
	for i := range r.Findings {
		nameWidth = max(nameWidth, len(r.Findings[i].Check))
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		state := fmt.Sprintf("%-*s", stateWidth, f.State)
		if isColoured {
			state = colours[f.State] + state + "\x1b[0m"
		}
		fmt.Fprintf(w, "%s  %-*s  %s\n", state, nameWidth, f.Check, textOf(f))
		if f.Remedy != "" {
			fmt.Fprintf(w, "%*s  next: %s\n", stateWidth+2+nameWidth, "", terminal.Printable(f.Remedy))
		}
	}
	fmt.Fprintf(w, "\n%s, %s, %d ok", terminal.CountOf(int64(r.Faults), "fault"), terminal.CountOf(int64(r.Warnings), "warning"),
		len(r.Findings)-r.Faults-r.Warnings-r.NotChecked)
	if r.NotChecked > 0 {
		fmt.Fprintf(w, ", %d not checked", r.NotChecked)
	}
	if r.Milliseconds > 0 {
		fmt.Fprintf(w, "; %.1f s", float64(r.Milliseconds)/1000)
	}
	if r.Units > 0 {
		fmt.Fprintf(w, ", %.1f request units", r.Units)
	}
	fmt.Fprintln(w)
	if r.hasMore {
		fmt.Fprintln(w, "The accounts, the namespace and the issuers were not called; messagehub doctor --online does that.")
	}
}

// textOf returns the text that follows a finding's state.
func textOf(f *doctor.Finding) string {
	text := terminal.Printable(f.Text)
	if f.State == doctor.NotChecked {
		text = strings.TrimPrefix(text, "not checked, ")
	}
	if f.Subject != "" && !strings.Contains(text, f.Subject) {
		text = terminal.Printable(f.Subject) + ": " + text
	}
	return text
}

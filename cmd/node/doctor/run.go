package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Check is one check of the doctor: its name, its function, and the checks
// that it needs.
type Check struct {
	Name  string
	Needs []string      // checks that must first end without a fault; unknown names are ignored
	Limit time.Duration // time limit; 0 for Options.Limit
	// Run performs the check and returns at least one finding. The caller sets
	// Finding.Check. Finding.Subject may be empty if the check examines only
	// one thing. A check whose Needs form a cycle does not run.
	Run func(context.Context) []Finding
}

// Options configure Run. The zero value is valid.
type Options struct {
	Limit time.Duration // time limit of a check; default 5 s
	Total time.Duration // time limit of all checks together; default 14 s, so that a second remains for the report
}

const (
	defaultLimit = 5 * time.Second
	defaultTotal = 14 * time.Second

	// returnWithin is how long Run waits for a check to return after the
	// check's context has ended.
	returnWithin = 500 * time.Millisecond
)

// Run runs all checks and returns their findings in the order of the table.
func Run(ctx context.Context, checks []Check, opts Options) *Report {
	if opts.Limit == 0 {
		opts.Limit = defaultLimit
	}
	if opts.Total == 0 {
		opts.Total = defaultTotal
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Total)
	defer cancel()
	r := &runner{limit: opts.Limit, outcomes: make(map[string]*checkOutcome, len(checks))}
	for i := range checks {
		r.outcomes[checks[i].Name] = &checkOutcome{ended: make(chan struct{})}
	}
	for i := range checks {
		go r.runCheck(ctx, &checks[i])
	}
	report := &Report{}
	for i := range checks {
		o := r.outcomes[checks[i].Name]
		<-o.ended
		report.Findings = append(report.Findings, o.findings...)
	}
	return report
}

type runner struct {
	limit    time.Duration
	outcomes map[string]*checkOutcome // outcomes by check name
}

// A checkOutcome is the result of a check. It may be read only after ended is
// closed.
type checkOutcome struct {
	ended    chan struct{}
	findings []Finding
	failed   string // check whose fault prevents the checks that need this one; "" for none
}

// runCheck waits for the checks that c needs, and then runs c.
func (r *runner) runCheck(ctx context.Context, c *Check) {
	o := r.outcomes[c.Name]
	defer close(o.ended)
	for _, name := range c.Needs {
		needed, isInTable := r.outcomes[name]
		if !isInTable {
			continue
		}
		<-needed.ended
		if needed.failed != "" {
			o.failed = needed.failed
			o.addFinding(c.Name, Skip("", "%s has a fault", needed.failed))
			return
		}
	}
	if ctx.Err() != nil {
		o.failed = c.Name
		o.addFinding(c.Name, Skip("", "the time of all checks is over"))
		return
	}
	limit := r.limit
	if c.Limit > 0 {
		limit = c.Limit
	}
	findings, isEnded := runWithin(ctx, limit, c.Run)
	if !isEnded {
		findings = []Finding{Fail("", fmt.Sprintf("it did not end within %s", limit), "check whether a disk or a network hangs")}
	}
	for _, f := range findings {
		o.addFinding(c.Name, f)
	}
	if slices.ContainsFunc(o.findings, func(f Finding) bool { return f.State == Fault }) {
		o.failed = c.Name
	}
}

// runWithin calls check with a context that ends after limit. After the context
// has ended, it waits at most returnWithin for check to return. If check does
// not return in that time, isEnded is false.
func runWithin(ctx context.Context, limit time.Duration, check func(context.Context) []Finding) (findings []Finding, isEnded bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan []Finding, 1)
	go func() { done <- check(ctx) }()
	select {
	case findings = <-done:
		return findings, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(returnWithin)
	defer timer.Stop()
	select {
	case findings = <-done:
		return findings, true
	case <-timer.C:
		return nil, false
	}
}

// addFinding appends a finding, with each of its texts on one line.
func (o *checkOutcome) addFinding(check string, f Finding) {
	f.Check = check
	f.Text, f.Remedy = oneLine(f.Text), oneLine(f.Remedy)
	o.findings = append(o.findings, f)
}

// oneLine joins the lines of a text, such as the message of a joined error.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Check is a row of the table of checks.
type Check struct {
	Name  string
	Needs []string      // names of checks that must end without a fault before; names that are not in the table are ignored
	Limit time.Duration // 0: the limit in Options
	// Run returns at least one finding. It does not set Check, nor Subject if
	// the check has only one subject. A check never runs if its Needs form a
	// cycle.
	Run func(context.Context) []Finding
}

// Options of Run. The zero value is valid.
type Options struct {
	Limit time.Duration // limit of one check; default 5 s
	Total time.Duration // limit of all checks together; default 14 s, which leaves one second for the report
}

const (
	defaultLimit = 5 * time.Second
	defaultTotal = 14 * time.Second

	// returnWithin is the time that a check has after the end of its context.
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
	outcomes map[string]*checkOutcome // outcomes by the name of the check
}

// A checkOutcome may be read once ended is closed.
type checkOutcome struct {
	ended    chan struct{}
	findings []Finding
	failed   string // name of the check whose fault prevents checks that need this one; "": none
}

// runCheck waits for the checks that a check needs, and runs it.
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

// runWithin calls check with a context that ends after limit. isEnded is false
// if check has not returned by then.
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

// addFinding adds a finding, on one line.
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

// Package checkreport formats the progress and the report of a check as text
// for a person.
package checkreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain/hub"
)

// Text returns the report as text that fits on one screen. If verbose is true,
// it also lists each finding.
func Text(r *hub.CheckReport, verbose bool) string {
	var b strings.Builder
	switch left := r.Found - r.Repaired; {
	case r.Found == 0:
		b.WriteString("check: clean\n")
	case left == 0:
		fmt.Fprintf(&b, "check: clean, now that %s repaired\n", countIs(r.Repaired, "finding"))
	default:
		fmt.Fprintf(&b, "check: %s, %d of them repaired\n", terminal.CountOf(r.Found, "finding"), r.Repaired)
	}
	fmt.Fprintf(&b, "  %s, %s, %s, %s retained, %s\n", terminal.CountOf(r.Recipients, "recipient"), terminal.CountOf(r.Cabinets, "cabinet"),
		terminal.CountOf(r.Drawers, "drawer"), terminal.CountOf(r.Events, "event"), terminal.CountOf(r.Open, "open bundle"))
	if r.Objects > 0 {
		fmt.Fprintf(&b, "  %s with %s\n", terminal.CountOf(r.Objects, "object"), terminal.CountOf(r.Rows, "row"))
	}
	if r.Found == 0 {
		return b.String()
	}
	if verbose {
		b.WriteByte('\n')
		for i := range r.Findings {
			fmt.Fprintln(&b, terminal.Printable(r.Findings[i].String()))
		}
	} else {
		writeGroups(&b, r.Findings)
	}
	writeAdvice(&b, r)
	return b.String()
}

// A findingGroup groups the findings that differ only in their position.
type findingGroup struct {
	first    *hub.Finding
	n        int
	subjects map[string]bool // names of recipients, or of buckets
}

// countSubjects returns the number of recipients or buckets in the group, as
// text such as "2 recipients".
func (g *findingGroup) countSubjects() string {
	thing := "recipient"
	if g.first.IsOfObjects() {
		thing = "bucket"
	}
	return terminal.CountOf(int64(len(g.subjects)), thing)
}

// groupsShown is the maximum number of groups in a report, so that it fits on one
// screen.
const groupsShown = 12

// writeGroups writes one line for each group of findings. The groups that
// cannot be repaired come first.
func writeGroups(b *strings.Builder, findings []hub.Finding) {
	type key struct {
		damage, repaired, isOfObjects bool
		kind                          string
	}
	byKey := make(map[key]*findingGroup)
	var groups []*findingGroup
	for i := range findings {
		f := &findings[i]
		k := key{f.Damage, f.Repaired, f.IsOfObjects(), f.Kind}
		g := byKey[k]
		if g == nil {
			g = &findingGroup{first: f, subjects: make(map[string]bool)}
			byKey[k] = g
			groups = append(groups, g)
		}
		g.n++
		g.subjects[f.Subject()] = true
	}
	slices.SortStableFunc(groups, func(x, y *findingGroup) int { return rankOf(x.first) - rankOf(y.first) })
	b.WriteByte('\n')
	for i, g := range groups {
		if i == groupsShown {
			fmt.Fprintf(b, "  and %s more\n", terminal.CountOf(int64(len(groups)-i), "kind"))
			break
		}
		f := g.first
		line := fmt.Sprintf("  %-13s %-4s %-15s %6d of %s, such as %s: %s: %s", stateOf(f), f.Rule, f.Kind, g.n,
			g.countSubjects(), f.Subject(), f.Where, f.Text)
		fmt.Fprintln(b, terminal.Clip(terminal.Printable(line), 118))
	}
}

func stateOf(f *hub.Finding) string {
	switch {
	case f.Repaired:
		return "repaired"
	case f.Damage:
		return "DAMAGE"
	case f.Kind == hub.NewerFormatFinding:
		return "not checked"
	}
	return "repairable"
}

func rankOf(f *hub.Finding) int {
	switch {
	case f.Repaired:
		return 2
	case f.Damage:
		return 0
	}
	return 1
}

// writeAdvice writes what to do about the findings that were not repaired.
func writeAdvice(b *strings.Builder, r *hub.CheckReport) {
	damage, objects, repairable, newer := false, false, false, false
	for i := range r.Findings {
		f := &r.Findings[i]
		isNewer := f.Kind == hub.NewerFormatFinding
		newer = newer || isNewer
		damage = damage || f.Damage && !f.IsOfObjects()
		objects = objects || f.Damage && f.IsOfObjects()
		repairable = repairable || !f.Damage && !f.Repaired && !isNewer
	}
	b.WriteByte('\n')
	if int64(len(r.Findings)) < r.Found {
		fmt.Fprintf(b, "Only the first %d findings were kept.\n", len(r.Findings))
	}
	if repairable {
		b.WriteString("To repair what can be repaired, run the same command with --repair. No data is lost.\n")
	}
	if newer {
		b.WriteString("A newer version of the hub has stored mailboxes or objects in a format that this version does not know.\n" +
			"They are not damaged and were not changed: check them with the newer version.\n")
	}
	if damage {
		b.WriteString("Damage affects the events or the acknowledgements themselves, so no repair is possible. Keep a copy of the\n" +
			"data, check the disk or the account, and restore a backup from before the damage. Until then the other\n" +
			"queues work; messagehub queue skip lets an actor pass a bundle that cannot be read. A cabinet whose next page\n" +
			"is lost is blocked, and the other cabinets of its actor continue; messagehub queue abandon ACTOR ORIGIN\n" +
			"CONTENTTYPE skips the lost events. If the head of a queue cannot be read, the commands of queues fail for it.\n")
	}
	if objects {
		b.WriteString("Damage of objects affects the events that their stores reported, so no repair is possible. Keep a copy of the\n" +
			"data, check the disk or the account, and restore a backup from before the damage. Then messagehub objects crawl\n" +
			"BUCKET stores how the current state of the object store differs from the backup.\n")
	}
}

func countIs(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return terminal.CountOf(n, thing) + " are"
}

// A Progress prints the progress of a check. On a terminal it updates one line;
// otherwise it prints a line every ten seconds.
type Progress struct {
	terminal.StatusLine
	reported time.Time
}

// NewProgress returns a Progress that prints to w.
func NewProgress(w io.Writer) *Progress {
	return &Progress{StatusLine: terminal.NewStatusLine(w), reported: time.Now()}
}

// Report prints the current counts. If the output is not a terminal, it prints
// at most one line every ten seconds.
func (p *Progress) Report(r *hub.CheckReport) {
	const linesEvery = 10 * time.Second
	text := fmt.Sprintf("checked %s, %s; %s", terminal.CountOf(r.Recipients, "recipient"), terminal.CountOf(r.Events, "event"), terminal.CountOf(r.Found, "finding"))
	switch {
	case p.Watched:
		p.Draw(text)
	case time.Since(p.reported) >= linesEvery:
		p.reported = time.Now()
		fmt.Fprintln(p, text)
	}
}

// Printf prints a line.
func (p *Progress) Printf(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

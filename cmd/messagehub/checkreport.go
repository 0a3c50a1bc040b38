package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain/hub"
)

// reportText is a report for a person: at most a screen, unless everything is to
// be listed.
func reportText(r *hub.CheckReport, verbose bool) string {
	var b strings.Builder
	switch left := r.Found - r.Mended; {
	case r.Found == 0:
		b.WriteString("check: clean\n")
	case left == 0:
		fmt.Fprintf(&b, "check: clean, now that %s mended\n", was(r.Mended, "finding"))
	default:
		fmt.Fprintf(&b, "check: %s, %d of them mended\n", countOf(r.Found, "finding"), r.Mended)
	}
	fmt.Fprintf(&b, "  %s, %s, %s, %s retained, %s\n", countOf(r.Recipients, "recipient"), countOf(r.Cabinets, "cabinet"),
		countOf(r.Drawers, "drawer"), countOf(r.Events, "event"), countOf(r.Open, "open bundle"))
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

// A findingGroup is what is the same but for its place.
type findingGroup struct {
	first      *hub.Finding
	n          int
	recipients map[string]bool
}

// groupsShown keeps a report on one screen.
const groupsShown = 12

// writeGroups writes a line a group, what no repair can mend first.
func writeGroups(b *strings.Builder, findings []hub.Finding) {
	type key struct {
		damage, mended bool
		kind           string
	}
	byKey := make(map[key]*findingGroup)
	var groups []*findingGroup
	for i := range findings {
		f := &findings[i]
		k := key{f.Damage, f.Mended, f.Kind}
		g := byKey[k]
		if g == nil {
			g = &findingGroup{first: f, recipients: make(map[string]bool)}
			byKey[k] = g
			groups = append(groups, g)
		}
		g.n++
		g.recipients[f.Recipient] = true
	}
	slices.SortStableFunc(groups, func(x, y *findingGroup) int { return rank(x.first) - rank(y.first) })
	b.WriteByte('\n')
	for i, g := range groups {
		if i == groupsShown {
			fmt.Fprintf(b, "  and %s more\n", countOf(int64(len(groups)-i), "kind"))
			break
		}
		f := g.first
		line := fmt.Sprintf("  %-13s %-4s %-15s %6d of %s, such as %s: %s: %s", state(f), f.Rule, f.Kind, g.n,
			countOf(int64(len(g.recipients)), "recipient"), f.Recipient, f.Where, f.Text)
		fmt.Fprintln(b, terminal.Clip(terminal.Printable(line), 118))
	}
}

func state(f *hub.Finding) string {
	switch {
	case f.Mended:
		return "mended"
	case f.Damage:
		return "DAMAGE"
	case f.Kind == hub.NewerFormatFinding:
		return "not checked"
	}
	return "can be mended"
}

func rank(f *hub.Finding) int {
	switch {
	case f.Mended:
		return 2
	case f.Damage:
		return 0
	}
	return 1
}

// writeAdvice says what to do about what is left.
func writeAdvice(b *strings.Builder, r *hub.CheckReport) {
	damage, mendable, newer := false, false, false
	for i := range r.Findings {
		f := &r.Findings[i]
		isNewer := f.Kind == hub.NewerFormatFinding
		newer = newer || isNewer
		damage = damage || f.Damage
		mendable = mendable || !f.Damage && !f.Mended && !isNewer
	}
	b.WriteByte('\n')
	if int64(len(r.Findings)) < r.Found {
		fmt.Fprintf(b, "Only the first %d findings were kept.\n", len(r.Findings))
	}
	if mendable {
		b.WriteString("What can be mended is mended by the same command with --repair. Nothing is lost by it.\n")
	}
	if newer {
		b.WriteString("A newer version of the hub has stored mailboxes in a format that this one does not know. They are not\n" +
			"damaged, and were left alone: check them with the newer version.\n")
	}
	if damage {
		b.WriteString("Damage is in the events themselves, or in what was acknowledged: no repair can know what was there.\n" +
			"Keep a copy of the data, look at the disk or the account, and restore a backup of before. Until then the\n" +
			"other queues work; messagehub queue freeze ACTOR keeps the damaged ones as they are, and skip lets an\n" +
			"actor pass a bundle that cannot be read.\n")
	}
}

// countOf is a number with its thing.
func countOf(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return thousands(n) + " " + thing + "s"
}

func was(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return countOf(n, thing) + " are"
}

// thousands groups the digits of n, which is not negative, by three.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A checkProgress tells how far a check is: a line that changes for a person at a
// terminal, a plain line now and then for everything else.
type checkProgress struct {
	terminal.StatusLine
	told time.Time
}

func newCheckProgress(w io.Writer) *checkProgress {
	return &checkProgress{StatusLine: terminal.NewStatusLine(w), told: time.Now()}
}

func (p *checkProgress) tell(r *hub.CheckReport) {
	const linesEvery = 10 * time.Second
	text := fmt.Sprintf("checked %s, %s; %s", countOf(r.Recipients, "recipient"), countOf(r.Events, "event"), countOf(r.Found, "finding"))
	switch {
	case p.Watched:
		p.Draw(text)
	case time.Since(p.told) >= linesEvery:
		p.told = time.Now()
		fmt.Fprintln(p, text)
	}
}

func (p *checkProgress) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// A Rule names a guarantee of the hub; see the package comment.
type Rule string

// The rules that a ledger checks.
const (
	RuleDelivered Rule = "H1"
	RuleOnce      Rule = "H2"
	RuleOrder     Rule = "H3"
	RuleSameBody  Rule = "H6"
	RuleGone      Rule = "H7"
	RuleDeleted   Rule = "L9"
)

// A Violation reports behaviour that breaks a rule.
type Violation struct { //nolint:errname // a rule was violated; few use it as an error
	Rule Rule // "" for a rule of the caller
	Text string
}

func (v *Violation) Error() string { return v.Text }

// A Verdict lists all violations.
type Verdict struct {
	Lost       []string // events that were not delivered
	Duplicated []string // events that were delivered more than once
	Disorder   []string // violations of the order of events
	Faults     []string // all other violations
}

// OK reports whether there are no violations.
func (v *Verdict) OK() bool {
	return len(v.Lost)+len(v.Duplicated)+len(v.Disorder)+len(v.Faults) == 0
}

func (v *Verdict) String() string {
	order := "order kept"
	if n := len(v.Disorder); n > 0 {
		order = fmt.Sprintf("order broken in %d places", n)
	}
	text := fmt.Sprintf("%d lost, %d duplicated, %s", len(v.Lost), len(v.Duplicated), order)
	if n := len(v.Faults); n > 0 {
		text += fmt.Sprintf(", %d other faults", n)
	}
	return text
}

// Details lists the first violations of each kind.
func (v *Verdict) Details() string {
	const limit = 20
	var b strings.Builder
	for _, part := range []struct {
		name  string
		items []string
	}{{"lost", v.Lost}, {"duplicated", v.Duplicated}, {"order", v.Disorder}, {"fault", v.Faults}} {
		for _, item := range part.items[:min(len(part.items), limit)] {
			fmt.Fprintf(&b, "%s: %s\n", part.name, item)
		}
		if more := len(part.items) - limit; more > 0 {
			fmt.Fprintf(&b, "%s: and %d more\n", part.name, more)
		}
	}
	return b.String()
}

// Check returns all violations so far. It treats accepted events that were not
// delivered as lost.
func (l *Ledger) Check() *Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &Verdict{Duplicated: slices.Clone(l.found.Duplicated), Disorder: slices.Clone(l.found.Disorder), Faults: slices.Clone(l.found.Faults)}
	if !l.options.InOrder {
		l.checkConfirmedBundles(v)
	}
	for key, e := range l.events {
		if !e.isGone && !e.Unsure {
			v.Lost = append(v.Lost, key.recipient+" "+key.id)
		}
	}
	for _, list := range [][]string{v.Lost, v.Duplicated, v.Disorder, v.Faults} {
		slices.Sort(list)
	}
	return v
}

// checkConfirmedBundles checks the confirmed bundles if their order is not known.
func (l *Ledger) checkConfirmedBundles(v *Verdict) {
	cabinets := make(map[cabinetName][]*Bundle)
	for _, b := range l.bundles {
		if b.confirmed == 0 || len(b.events) < len(b.Elements) || len(b.events) == 0 {
			continue // never confirmed, or already reported by Receive
		}
		if b.confirmedOK > 1 {
			v.Faults = append(v.Faults, fmt.Sprintf("bundle %s of %s: dequeued %d times", b.ID, b.Actor, b.confirmedOK))
		}
		for _, e := range b.events {
			e.times++
		}
		c := cabinetName{b.Actor, b.Cabinet}
		cabinets[c] = append(cabinets[c], b)
	}
	for key, e := range l.events {
		if e.times > 1 {
			v.Duplicated = append(v.Duplicated, key.recipient+" "+key.id)
		}
		e.times = 0
	}
	all := newOrder(l.lengths)
	for c, bundles := range cabinets {
		report := func(texts []string) {
			for _, text := range texts {
				v.Disorder = append(v.Disorder, c.recipient+" "+c.name+": "+text)
			}
		}
		report(findDisorder(bundles))
		for _, b := range bundles {
			report(all.addBundle(b))
		}
	}
}

// Undelivered returns one line for each accepted event that no confirmed bundle has.
func (l *Ledger) Undelivered() (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.isGone || e.Unsure {
			continue
		}
		where := "in no bundle"
		if e.bundle != nil {
			where = "in bundle " + e.bundle.ID
		}
		found = append(found, fmt.Sprintf("%s of %s %s, %s", e.ID, e.Recipient, e.Cabinet, where))
	}
	slices.Sort(found)
	return found
}

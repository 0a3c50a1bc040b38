package query

import "slices"

// A grouping is a compiled GROUP BY. An aggregate without GROUP BY has one group of all rows.
type grouping struct {
	keys       []groupKey
	byText     map[string]int // index of each key, by its canonical text
	aggregates []aggregate
}

// maxKeyText bounds the text of a key. Every part of SELECT is compared with the
// keys, so without the limit a long query would take quadratic time.
const maxKeyText = 1 << 10

// A groupKey is one expression of GROUP BY. SELECT refers to a key by repeating the expression.
type groupKey struct {
	expr expr
	slot int
}

func (c *compiler) compileGrouping(nodes []exprNode, s *scope) (*grouping, error) {
	g := &grouping{byText: map[string]int{}}
	for _, n := range nodes {
		e, err := c.compileExpr(n, s)
		if err != nil {
			return nil, err
		}
		text := printNode(n)
		if len(text) > maxKeyText {
			return nil, &Error{n.textOffset(), "an expression of GROUP BY is too long"}
		}
		if _, ok := g.byText[text]; !ok {
			g.byText[text] = len(g.keys)
		}
		g.keys = append(g.keys, groupKey{e, c.takeSlot()})
	}
	return g, nil
}

// findKey returns the key of GROUP BY that has the same canonical text as n.
func (g *grouping) findKey(n exprNode) (expr, bool) {
	if g == nil || len(g.keys) == 0 {
		return nil, false
	}
	p := printer{limit: maxKeyText}
	p.writeNode(n)
	i, ok := g.byText[p.String()]
	if !ok {
		return nil, false
	}
	return variableExpr{slot: g.keys[i].slot}, true
}

// groups holds the groups of the rows so far, in the order of their first rows.
type groups struct {
	grouping *grouping
	byKey    map[string]*group
	ordered  []*group
	buffer   []byte
}

// groupSize is the approximate size in bytes of a group, and of each key and aggregate in it.
const groupSize = 96

type group struct {
	keys [][]byte
	sums []accumulator
}

func (g *grouping) newGroups() *groups {
	all := &groups{grouping: g, byKey: map[string]*group{}}
	if len(g.keys) == 0 { // without keys the query has one group, even without rows
		all.openGroup(nil)
	}
	return all
}

func (g *groups) openGroup(keys [][]byte) *group {
	this := &group{keys: keys, sums: make([]accumulator, len(g.grouping.aggregates))}
	g.ordered = append(g.ordered, this)
	return this
}

// addRow adds the row in slots.
func (g *groups) addRow(slots *Slots) {
	this := g.findGroup(slots)
	for i, a := range g.grouping.aggregates {
		slots.spendSteps(1)
		this.sums[i].addValue(a.function, a.arg.evalRow(slots))
	}
}

func (g *groups) findGroup(slots *Slots) *group {
	if len(g.grouping.keys) == 0 {
		return g.ordered[0]
	}
	name := g.buffer[:0]
	for _, k := range g.grouping.keys { // the text of undefined is empty, so undefined forms a separate group
		v := k.expr.evalRow(slots)
		slots.spendCanonical(v)
		name = append(v.appendCanonical(name), 0)
	}
	g.buffer = name
	this, ok := g.byKey[string(name)]
	if !ok {
		var keys [][]byte
		for _, k := range g.grouping.keys {
			keys = append(keys, append([]byte(nil), evalRaw(k.expr, slots)...))
		}
		this = g.openGroup(keys)
		g.byKey[string(name)] = this
		slots.Hold(groupSize*(1+len(keys)+len(this.sums)) + 2*len(name))
	}
	return this
}

// sortByPath sorts the groups by their key if it is one path of the document. The service returns
// the groups in this order, which is the order of the index.
func (g *groups) sortByPath(slots *Slots) {
	if len(g.grouping.keys) != 1 {
		return
	}
	if _, isPath := g.grouping.keys[0].expr.(pathExpr); !isPath {
		return
	}
	values := make(map[*group]Value, len(g.ordered))
	for _, this := range g.ordered {
		values[this] = ParseValue(this.keys[0])
	}
	slices.SortStableFunc(g.ordered, func(a, b *group) int {
		slots.spendSteps(1)
		return Compare(values[a], values[b])
	})
}

// eachGroup calls visit for each group, with keys and aggregates in their slots. It is called once.
func (g *groups) eachGroup(slots *Slots, visit func() bool) {
	g.sortByPath(slots)
	for _, this := range g.ordered {
		for i, k := range g.grouping.keys {
			slots.values[k.slot] = this.keys[i]
		}
		for i, a := range g.grouping.aggregates {
			slots.values[a.slot] = this.sums[i].finalValue(a.function).Append(nil)
		}
		if slots.failure != nil || !visit() {
			return
		}
	}
}

// seenResults remembers results, so that DISTINCT returns each result once.
type seenResults map[string]struct{}

// newSeenResults returns an empty set if wanted, otherwise nil, for which every result is new.
func newSeenResults(wanted bool) seenResults {
	if !wanted {
		return nil
	}
	return seenResults{}
}

// addIfNew adds raw, and reports whether it is new.
func (s seenResults) addIfNew(raw []byte) bool {
	if s == nil {
		return true
	}
	name := string(ParseValue(raw).appendCanonical(nil))
	if _, ok := s[name]; ok {
		return false
	}
	s[name] = struct{}{}
	return true
}

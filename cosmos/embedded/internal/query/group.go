package query

import "slices"

// A grouping is a compiled GROUP BY. For an aggregate without GROUP BY, all rows are one group.
type grouping struct {
	keys       []groupKey
	byText     map[string]int // index of each key, by its canonical text
	aggregates []aggregate
}

// maxKeyText is the maximum length of a key's text. Every part of SELECT is compared with the keys, so without a limit
// a long query would take quadratic time.
const maxKeyText = 1 << 10

// A groupKey is one expression of GROUP BY. SELECT refers to it by repeating the expression.
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

// findKey returns the GROUP BY key whose canonical text equals that of n.
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

// groups contains the groups of the rows so far, ordered by their first rows.
type groups struct {
	grouping *grouping
	byKey    map[string]*group
	ordered  []*group
	buffer   []byte
}

// groupSize estimates the size in bytes of a group, and of each key and aggregate in it.
const groupSize = 96

type group struct {
	keys [][]byte
	sums []accumulator
}

func (g *grouping) newGroups() *groups {
	all := &groups{grouping: g, byKey: map[string]*group{}}
	if len(g.keys) == 0 { // without GROUP BY there is always one group, even for no rows
		all.openGroup(nil)
	}
	return all
}

func (g *groups) openGroup(keys [][]byte) *group {
	this := &group{keys: keys, sums: make([]accumulator, len(g.grouping.aggregates))}
	g.ordered = append(g.ordered, this)
	return this
}

// addRow adds the row in slots to its group.
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
	for _, k := range g.grouping.keys { // undefined has an empty text, so it forms its own group
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

// sortByPath sorts the groups by their key if the only key is a path of the document. Azure returns the groups in this
// order, because its index has it.
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

// eachGroup stores the keys and aggregates of each group in slots and calls visit. It may be called only once.
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

// seenResults contains the results so far, so that DISTINCT returns each one once.
type seenResults map[string]struct{}

// newSeenResults returns an empty set if wanted is true. Otherwise it returns nil, for which every result is new.
func newSeenResults(wanted bool) seenResults {
	if !wanted {
		return nil
	}
	return seenResults{}
}

// addIfNew adds raw, and reports whether it was new.
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

package query

import (
	"bytes"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// An Analysis describes how an index can serve a query.
type Analysis struct {
	// Predicates are true for every document that has a result. So an index on the path of any one of them finds all
	// candidates.
	Predicates []Predicate
	// Exact reports whether the Predicates imply the condition, so that documents found by indexes need no further
	// test.
	Exact bool
	// Orders are the paths of ORDER BY. An index in their order makes sorting unnecessary.
	Orders []Order
	// NeedsDocument is false if the result is just the number of candidates, as for SELECT VALUE COUNT(1).
	NeedsDocument bool
}

// A Predicate restricts the value at a path: to one of In or, if In is nil, to a range. A range has at least one bound.
// It contains only values of the bound's type, because numbers and strings cannot be compared.
type Predicate struct {
	Path      rawjson.Path
	In        []Value // distinct scalars; if empty but not nil, no document matches
	Low, High *Bound
}

// A Bound is one end of a range.
type Bound struct {
	Value     Value
	Inclusive bool
}

// Equal returns the value if the predicate is an equality.
func (p Predicate) Equal() (Value, bool) {
	if len(p.In) != 1 {
		return undefined, false
	}
	return p.In[0], true
}

// Holds reports whether the predicate is true for a value.
func (p Predicate) Holds(v Value) bool {
	for _, one := range p.In {
		if v.Kind == one.Kind && Compare(v, one) == 0 {
			return true
		}
	}
	if p.In != nil {
		return false
	}
	return p.Low.isWithin(v, 1) && p.High.isWithin(v, -1)
}

func (b *Bound) isWithin(v Value, side int) bool {
	if b == nil {
		return true
	}
	c := Compare(v, b.Value)
	return v.Kind == b.Value.Kind && (c == side || c == 0 && b.Inclusive)
}

// Analyze derives predicates from the condition.
func (q *Query) Analyze() Analysis {
	a := Analysis{Orders: q.orders, Exact: len(q.where) == 0}
	var all predicateList
	for _, condition := range q.document {
		found, exact := q.findPredicates(condition)
		a.Exact = a.Exact && exact
		for _, p := range found {
			all.addPredicate(p)
		}
	}
	a.Predicates = all.list
	a.NeedsDocument = !a.Exact || !q.Counts() || !q.isRowCount()
	return a
}

// isRowCount reports whether every aggregate has a constant argument, so that the result depends only on the number of
// rows.
func (q *Query) isRowCount() bool {
	for _, a := range q.group.aggregates {
		if c, ok := a.arg.(constantExpr); !ok || c.value.Kind == Undefined {
			return false
		}
	}
	return true
}

// A predicateList collects predicates. It combines two half ranges of the same path and type into one range.
type predicateList struct {
	list []Predicate
	open map[openRange][]int // indexes of half ranges that lack a bound
}

// An openRange is the key of half ranges. Two half ranges with the same key can form one range.
type openRange struct {
	path      string
	kind      Kind
	missesLow bool
}

func (l *predicateList) addPredicate(p Predicate) {
	half := p.In == nil && (p.Low == nil) != (p.High == nil)
	if !half {
		l.list = append(l.list, p)
		return
	}
	bound := p.Low
	if bound == nil {
		bound = p.High
	}
	key := openRange{pathKey(p.Path), bound.Value.Kind, p.Low != nil}
	if places := l.open[key]; len(places) > 0 {
		have := &l.list[places[0]]
		if p.Low != nil {
			have.Low = p.Low
		} else {
			have.High = p.High
		}
		l.open[key] = places[1:]
		return
	}
	if l.open == nil {
		l.open = map[openRange][]int{}
	}
	key.missesLow = p.Low == nil
	l.open[key] = append(l.open[key], len(l.list))
	l.list = append(l.list, p)
}

// findPredicates returns predicates that are true wherever e is true. exact reports whether e is also true wherever
// they are.
func (q *Query) findPredicates(e expr) (list []Predicate, exact bool) {
	switch e := e.(type) {
	case pathExpr:
		return q.newPredicates(e, boolValue(true)), true
	case negationExpr:
		if p, ok := e.operand.(pathExpr); ok {
			return q.newPredicates(p, boolValue(false)), true
		}
	case comparisonExpr:
		return q.comparisonPredicates(e)
	case membershipExpr:
		if p, ok := e.operand.(pathExpr); ok {
			values, ok := scalarValues(e.list)
			if ok {
				return q.newPredicates(p, values...), true
			}
		}
	case callExpr:
		return q.callPredicates(e)
	case logicalExpr:
		if !e.and {
			return q.orPredicates(e)
		}
		exact = true
		for _, term := range e.terms {
			found, all := q.findPredicates(term)
			list, exact = append(list, found...), exact && all
		}
		return list, exact
	}
	return nil, false
}

func (q *Query) newPredicates(p pathExpr, values ...Value) []Predicate {
	in := []Value{}
	once := newSeenResults(true)
	for _, v := range values {
		if v.Kind != Undefined && once.addIfNew(v.Append(nil)) {
			in = append(in, v)
		}
	}
	return []Predicate{{Path: q.paths[p.slot-q.extra], In: in}}
}

func scalarValues(list []expr) (values []Value, ok bool) {
	for _, e := range list {
		c, ok := e.(constantExpr)
		if !ok || c.value.Kind >= Array {
			return nil, false
		}
		values = append(values, c.value)
	}
	return values, true
}

// mirrored maps a comparison operator to the one for swapped operands.
var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (q *Query) comparisonPredicates(c comparisonExpr) ([]Predicate, bool) {
	slot, v, ok := pathAndConstant(c)
	op := c.op
	if _, swapped := c.left.(constantExpr); swapped {
		op = mirrored[op]
	}
	if !ok || op == "" || op == "!=" || op == "=" && v.Kind >= Array {
		return nil, false
	}
	path := pathExpr{slot}
	switch {
	case op == "=":
		return q.newPredicates(path, v), true
	case v.Kind == Undefined || v.Kind >= Array:
		return q.newPredicates(path), true // this comparison is never true
	}
	p := Predicate{Path: q.paths[slot-q.extra]}
	bound := &Bound{v, len(op) == 2}
	if op[0] == '>' {
		p.Low = bound
	} else {
		p.High = bound
	}
	return []Predicate{p}, true
}

// callPredicates returns the predicates that IS_NULL or STARTSWITH implies. For STARTSWITH, it is a range.
func (q *Query) callPredicates(c callExpr) ([]Predicate, bool) {
	path, ok := c.args[0].(pathExpr)
	if !ok {
		return nil, false
	}
	if c.name == "IS_NULL" {
		return q.newPredicates(path, null), true
	}
	if c.name != "STARTSWITH" || len(c.args) != 2 {
		return nil, false
	}
	prefix, ok := c.args[1].(constantExpr)
	if !ok || prefix.value.Kind != String {
		return nil, false
	}
	p := Predicate{Path: q.paths[path.slot-q.extra], Low: &Bound{prefix.value, true}}
	if n := len(prefix.value.Text); n > 0 && prefix.value.Text[n-1] < 0xFF {
		next := bytes.Clone(prefix.value.Text)
		next[n-1]++ // the lowest text above all texts with the prefix; UTF-8 contains no byte 0xFF
		p.High = &Bound{Value: Value{Kind: String, Text: next}}
		return []Predicate{p}, true
	}
	return []Predicate{p}, len(prefix.value.Text) == 0
}

// orPredicates returns predicates for the paths that every term of an OR restricts to a list of values.
func (q *Query) orPredicates(e logicalExpr) (list []Predicate, exact bool) {
	parts := listDisjuncts(e, nil)
	first, exact := q.findPredicates(parts[0])
	exact = exact && len(first) == 1
	var kept []confinedPath
	for _, p := range first {
		if p.In != nil {
			kept = append(kept, confinedPath{pathKey(p.Path), slices.Clone(p.In)})
		}
	}
	for _, part := range parts[1:] {
		found, all := q.findPredicates(part)
		exact = exact && all && len(found) == 1
		values := map[string][]Value{}
		for _, p := range found {
			if key := pathKey(p.Path); p.In != nil && values[key] == nil {
				values[key] = p.In
			}
		}
		kept = slices.DeleteFunc(kept, func(c confinedPath) bool { return values[c.key] == nil })
		for i := range kept {
			kept[i].values = append(kept[i].values, values[kept[i].key]...)
		}
	}
	for _, c := range kept {
		list = append(list, q.newPredicates(pathExpr{q.slotOf[c.key]}, c.values...)...)
	}
	return list, exact && len(list) == 1
}

// A confinedPath is the key of a path, with the only values that the path can have.
type confinedPath struct {
	key    string
	values []Value
}

// listDisjuncts appends the terms of an OR to list.
func listDisjuncts(e expr, list []expr) []expr {
	l, ok := e.(logicalExpr)
	if !ok || l.and {
		return append(list, e)
	}
	for _, term := range l.terms {
		list = listDisjuncts(term, list)
	}
	return list
}

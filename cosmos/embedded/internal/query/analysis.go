package query

import (
	"bytes"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// An Analysis says what an index can do for a query.
type Analysis struct {
	// Predicates all hold for every document that has a result. An index on
	// any of their paths finds all candidates.
	Predicates []Predicate
	// Exact says that the condition holds for every document for which all
	// Predicates do: a candidate of all of them need not be tested again.
	Exact bool
	// Orders are the paths of ORDER BY. An index in their order saves sorting.
	Orders []Order
	// NeedsDocument is false if the number of candidates is the whole answer,
	// as for SELECT VALUE COUNT(1), and the values of the candidates are not
	// asked for.
	NeedsDocument bool
}

// A Predicate confines the value at one path: to the values of In, or, if In
// is nil, to a range. A range has at least one bound, and lies within the type
// of it: a number is never greater than a string, nor less.
type Predicate struct {
	Path      rawjson.Path
	In        []Value // scalars, none of them twice; empty, not nil: no document can match
	Low, High *Bound
}

// A Bound is one end of a range.
type Bound struct {
	Value     Value
	Inclusive bool
}

// Equal reports whether the predicate is an equality, and with what.
func (p Predicate) Equal() (Value, bool) {
	if len(p.In) != 1 {
		return undefined, false
	}
	return p.In[0], true
}

// Holds reports whether the predicate holds for the value at its path.
func (p Predicate) Holds(v Value) bool {
	for _, one := range p.In {
		if v.Kind == one.Kind && Compare(v, one) == 0 {
			return true
		}
	}
	if p.In != nil {
		return false
	}
	return p.Low.allows(v, 1) && p.High.allows(v, -1)
}

func (b *Bound) allows(v Value, side int) bool {
	if b == nil {
		return true
	}
	c := Compare(v, b.Value)
	return v.Kind == b.Value.Kind && (c == side || c == 0 && b.Inclusive)
}

// Analyze takes the condition apart.
func (q *Query) Analyze() Analysis {
	a := Analysis{Orders: q.orders, Exact: len(q.where) == 0}
	for _, condition := range q.document {
		found, exact := q.predicates(condition)
		a.Exact = a.Exact && exact
		for _, p := range found {
			a.Predicates = confine(a.Predicates, p)
		}
	}
	a.NeedsDocument = !a.Exact || !q.Counts() || !q.countsRows()
	return a
}

// countsRows reports whether every aggregate is of a constant.
func (q *Query) countsRows() bool {
	for _, a := range q.group.aggregates {
		if c, ok := a.arg.(constant); !ok || c.value.Kind == Undefined {
			return false
		}
	}
	return true
}

// confine adds p to the list. Two half ranges over one path and type become
// one range.
func confine(list []Predicate, p Predicate) []Predicate {
	for i, have := range list {
		if p.In != nil || have.In != nil || !samePath(have.Path, p.Path) {
			continue
		}
		switch {
		case have.High == nil && p.Low == nil && have.Low.Value.Kind == p.High.Value.Kind:
			list[i].High = p.High
			return list
		case have.Low == nil && p.High == nil && have.High.Value.Kind == p.Low.Value.Kind:
			list[i].Low = p.Low
			return list
		}
	}
	return append(list, p)
}

// predicates returns what must hold where e is true, and whether that is all
// that e says.
func (q *Query) predicates(e expr) (list []Predicate, exact bool) {
	switch e := e.(type) {
	case property:
		return q.in(e, boolean(true)), true
	case negation:
		if p, ok := e.operand.(property); ok {
			return q.in(p, boolean(false)), true
		}
	case comparison:
		return q.compared(e)
	case membership:
		if p, ok := e.operand.(property); ok {
			values, ok := scalars(e.list)
			if ok {
				return q.in(p, values...), true
			}
		}
	case call:
		return q.called(e)
	case logical:
		if e.and {
			left, all := q.predicates(e.left)
			right, every := q.predicates(e.right)
			return append(left, right...), all && every
		}
		return q.either(e)
	}
	return nil, false
}

func (q *Query) in(p property, values ...Value) []Predicate {
	in := []Value{}
	once := newSeen(true)
	for _, v := range values {
		if v.Kind != Undefined && once.first(v.Append(nil)) {
			in = append(in, v)
		}
	}
	return []Predicate{{Path: q.paths[p.slot-q.extra], In: in}}
}

func scalars(list []expr) (values []Value, ok bool) {
	for _, e := range list {
		c, ok := e.(constant)
		if !ok || c.value.Kind >= Array {
			return nil, false
		}
		values = append(values, c.value)
	}
	return values, true
}

// mirrored is the operator that says the same with its operands exchanged.
var mirrored = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (q *Query) compared(c comparison) ([]Predicate, bool) {
	slot, v, ok := sides(c)
	op := c.op
	if _, swapped := c.left.(constant); swapped {
		op = mirrored[op]
	}
	if !ok || op == "" || op == "!=" || op == "=" && v.Kind >= Array {
		return nil, false
	}
	path := property{slot}
	switch {
	case op == "=":
		return q.in(path, v), true
	case v.Kind == Undefined || v.Kind >= Array:
		return q.in(path), true // such a comparison is never true
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

// called knows IS_NULL, and STARTSWITH, which is a range.
func (q *Query) called(c call) ([]Predicate, bool) {
	path, ok := c.args[0].(property)
	if !ok {
		return nil, false
	}
	if c.name == "IS_NULL" {
		return q.in(path, null), true
	}
	if c.name != "STARTSWITH" || len(c.args) != 2 {
		return nil, false
	}
	prefix, ok := c.args[1].(constant)
	if !ok || prefix.value.Kind != String {
		return nil, false
	}
	p := Predicate{Path: q.paths[path.slot-q.extra], Low: &Bound{prefix.value, true}}
	if n := len(prefix.value.Text); n > 0 && prefix.value.Text[n-1] < 0xFF {
		next := bytes.Clone(prefix.value.Text)
		next[n-1]++ // UTF-8 never has the byte 0xFF, so this is the next text that lacks the prefix
		p.High = &Bound{Value: Value{Kind: String, Text: next}}
		return []Predicate{p}, true
	}
	return []Predicate{p}, len(prefix.value.Text) == 0
}

// either keeps the paths that every part of an OR confines to some values.
func (q *Query) either(e logical) (list []Predicate, exact bool) {
	parts := disjuncts(e, nil)
	first, exact := q.predicates(parts[0])
	exact = exact && len(first) == 1
	values := make([][]Value, len(first)) // for each of first, those of all parts; nil: given up
	for i, p := range first {
		values[i] = slices.Clone(p.In)
	}
	for _, part := range parts[1:] {
		found, all := q.predicates(part)
		exact = exact && all && len(found) == 1
		for i, p := range first {
			if values[i] != nil {
				values[i] = joinValues(values[i], found, p.Path)
			}
		}
	}
	for i, p := range first {
		if values[i] != nil {
			list = append(list, q.in(property{q.slotOf(p.Path)}, values[i]...)...)
		}
	}
	return list, exact && len(list) == 1
}

// joinValues adds the values of the predicate on path; nil if there is none.
func joinValues(values []Value, found []Predicate, path rawjson.Path) []Value {
	for _, p := range found {
		if p.In != nil && samePath(p.Path, path) {
			return append(values, p.In...)
		}
	}
	return nil
}

// disjuncts takes apart what OR joins.
func disjuncts(e expr, list []expr) []expr {
	if l, ok := e.(logical); ok && !l.and {
		return disjuncts(l.right, disjuncts(l.left, list))
	}
	return append(list, e)
}

func (q *Query) slotOf(path rawjson.Path) int {
	for i, have := range q.paths {
		if samePath(have, path) {
			return q.extra + i
		}
	}
	return -1 // a predicate's path is always one of the query
}

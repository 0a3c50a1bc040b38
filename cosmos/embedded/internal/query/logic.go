package query

import (
	"maps"
	"math"
	"slices"
)

type comparisonExpr struct {
	op          string
	left, right expr
}

func (e comparisonExpr) evalRow(slots *Slots) Value {
	a, b := e.left.evalRow(slots), e.right.evalRow(slots)
	if a.Kind >= Array && a.Kind == b.Kind {
		slots.spendCompare(a, b)
	}
	if !slots.spendSteps(1) {
		return undefined
	}
	return compareBy(e.op, a, b)
}

// compareBy compares two values that are not undefined. < and > require two values of the same ordered type; otherwise
// the result is undefined.
func compareBy(op string, a, b Value) Value {
	if a.Kind == Undefined || b.Kind == Undefined {
		return undefined
	}
	if math.IsNaN(a.Num) || math.IsNaN(b.Num) {
		return boolValue(op == "!=")
	}
	switch op {
	case "=":
		return boolValue(equalValues(a, b))
	case "!=":
		return boolValue(!equalValues(a, b))
	}
	if a.Kind != b.Kind || a.Kind >= Array {
		return undefined
	}
	c := Compare(a, b)
	switch op {
	case "<":
		return boolValue(c < 0)
	case "<=":
		return boolValue(c <= 0)
	case ">":
		return boolValue(c > 0)
	}
	return boolValue(c >= 0)
}

// A logicalExpr joins conditions by AND or OR. Undefined has the role of unknown in SQL.
type logicalExpr struct {
	and   bool
	terms []expr
}

func (e logicalExpr) evalRow(slots *Slots) Value {
	known := true
	for _, term := range e.terms {
		if !slots.spendSteps(1) {
			return undefined
		}
		v := term.evalRow(slots)
		if v.Kind != Bool {
			known = false
		} else if v.Bool != e.and {
			return v // false AND …, and true OR …, need no further term
		}
	}
	if !known {
		return undefined
	}
	return boolValue(e.and)
}

// joinTerms joins the truth values term(v) for all v in list by AND or OR, as logicalExpr does.
func joinTerms(and bool, list []Value, term func(v Value) Value) Value {
	known := true
	for _, v := range list {
		if is := term(v); is.Kind != Bool {
			known = false
		} else if is.Bool != and {
			return is
		}
	}
	if !known {
		return undefined
	}
	return boolValue(and)
}

// newLogical joins terms by AND or OR. In an OR, it combines comparisons of one path with constants into a
// membershipExpr, which has a lookup table.
func newLogical(and bool, terms []expr) expr {
	if and || len(terms) < minLookup {
		return logicalExpr{and, terms}
	}
	equal := map[int][]expr{} // the constants with which each path is compared, by slot
	var rest []expr
	for _, term := range terms {
		if c, ok := term.(comparisonExpr); ok && c.op == "=" {
			if slot, v, ok := pathAndConstant(c); ok {
				equal[slot] = append(equal[slot], constantExpr{v})
				continue
			}
		}
		rest = append(rest, term)
	}
	for _, slot := range slices.Sorted(maps.Keys(equal)) {
		rest = append(rest, newMembership(pathExpr{slot}, equal[slot]))
	}
	if len(rest) == 1 {
		return rest[0]
	}
	return logicalExpr{false, rest}
}

type negationExpr struct{ operand expr }

func (e negationExpr) evalRow(slots *Slots) Value {
	if v := e.operand.evalRow(slots); v.Kind == Bool {
		return boolValue(!v.Bool)
	}
	return undefined
}

// A membershipExpr is operand IN (list). For a list of constants it has a lookup table, so that a long list costs no
// more than a short one.
type membershipExpr struct {
	operand expr
	list    []expr
	lookup  *constantLookup // nil if the list must be searched
}

// minLookup is the list length from which a lookup table is faster than a search.
const minLookup = 8

func newMembership(operand expr, list []expr) membershipExpr {
	e := membershipExpr{operand: operand, list: list}
	if len(list) >= minLookup && isConstant(list) {
		e.lookup = newLookup(list)
	}
	return e
}

func (e membershipExpr) evalRow(slots *Slots) Value {
	v := e.operand.evalRow(slots)
	if v.Kind == Undefined || !slots.spendSteps(1) {
		return undefined
	}
	if e.lookup != nil {
		return e.lookup.findValue(v, slots)
	}
	result := boolValue(false)
	for _, item := range e.list {
		w := item.evalRow(slots)
		if v.Kind >= Array && v.Kind == w.Kind {
			slots.spendCompare(v, w)
		}
		if !slots.spendSteps(1) {
			return undefined
		}
		switch is := compareBy("=", v, w); {
		case is.IsTrue():
			return is
		case is.Kind == Undefined:
			result = undefined
		}
	}
	return result
}

// A constantLookup finds a value among constants. Values are equal as with the operator =.
type constantLookup struct {
	numbers   map[float64]struct{}
	others    map[string]struct{} // the remaining constants, by kind and canonical text
	undefined bool                // true if a constant is undefined; then a value that is not found has the result undefined
}

func newLookup(list []expr) *constantLookup {
	l := &constantLookup{numbers: map[float64]struct{}{}, others: map[string]struct{}{}}
	for _, e := range list {
		switch v := e.(constantExpr).value; v.Kind {
		case Undefined:
			l.undefined = true
		case Number:
			l.numbers[v.Num] = struct{}{}
		default:
			l.others[string(v.lookupKey(nil))] = struct{}{}
		}
	}
	return l
}

// lookupKey appends a text that is equal exactly for equal values.
func (v Value) lookupKey(dst []byte) []byte {
	dst = append(dst, '0'+byte(v.Kind)) //nolint:gosec // there are seven kinds
	if v.Kind == String {
		return append(dst, v.Text...)
	}
	return v.appendCanonical(dst)
}

func (l *constantLookup) findValue(v Value, slots *Slots) Value {
	var found bool
	if v.Kind == Number {
		_, found = l.numbers[v.Num]
	} else {
		if v.Kind >= Array {
			slots.spendCanonical(v)
		}
		var small [64]byte
		_, found = l.others[string(v.lookupKey(small[:0]))]
	}
	if !found && l.undefined {
		return undefined
	}
	return boolValue(found)
}

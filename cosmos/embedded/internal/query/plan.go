package query

import "github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"

// A Plan splits the condition of a query into what an index can answer and
// the rest, for which a document has to be loaded. The engine has no index:
// the split decides what a query is charged, not what it finds.
type Plan struct {
	// Predicates is the number of indexed paths that are compared.
	Predicates int
	indexed    []expr
	rest       []expr
	perRow     bool // a part of the condition is about rows of FROM
}

// Plan splits the condition; indexed reports which paths have an index.
func (q *Query) Plan(indexed func(rawjson.Path) bool) Plan {
	var p Plan
	counted := map[int]bool{}
	for _, c := range q.document {
		slot := comparedSlot(c)
		if slot < 0 || !indexed(q.paths[slot-q.extra]) {
			p.rest = append(p.rest, c)
			continue
		}
		p.indexed = append(p.indexed, c)
		counted[slot] = true
	}
	p.Predicates = len(counted)
	p.perRow = len(q.where) > 0
	return p
}

// Loads reports whether the document has to be loaded, because the indexed
// part of the condition holds.
func (p Plan) Loads(slots [][]byte) bool { return allTrue(p.indexed, slots) }

// Keeps reports whether the rest of the condition holds as well.
func (p Plan) Keeps(slots [][]byte) bool { return allTrue(p.rest, slots) }

// IndexOnly reports whether an index alone answers the condition.
func (p Plan) IndexOnly() bool { return len(p.rest) == 0 && !p.perRow }

func allTrue(conditions []expr, slots [][]byte) bool {
	for _, c := range conditions {
		if !c.eval(slots).IsTrue() {
			return false
		}
	}
	return true
}

// comparedSlot returns the path that e compares with constants, -1 if e is
// another kind of condition.
func comparedSlot(e expr) int {
	switch e := e.(type) {
	case comparison:
		if e.op == "!=" {
			return -1
		}
		if slot, _, ok := sides(e); ok {
			return slot
		}
	case membership:
		prop, ok := e.operand.(property)
		for _, item := range e.list {
			if _, is := item.(constant); !is {
				ok = false
			}
		}
		if ok {
			return prop.slot
		}
	}
	return -1
}

func sides(c comparison) (slot int, v Value, ok bool) {
	left, right := c.left, c.right
	if _, is := left.(constant); is {
		left, right = right, left
	}
	prop, isPath := left.(property)
	value, isConstant := right.(constant)
	return prop.slot, value.value, isPath && isConstant
}

// Equalities returns, for each path, the constant that the condition demands
// it to be equal to. ok is false unless there is one for every path.
func (q *Query) Equalities(paths []rawjson.Path) (values []Value, ok bool) {
	for _, path := range paths {
		v, found := q.equality(q.document, path)
		if !found {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

func (q *Query) equality(list []expr, path rawjson.Path) (Value, bool) {
	for _, e := range list {
		c, is := e.(comparison)
		if !is || c.op != "=" {
			continue
		}
		if slot, v, ok := sides(c); ok && samePath(q.paths[slot-q.extra], path) {
			return v, true
		}
	}
	return undefined, false
}

// conjuncts takes apart what AND joins.
func conjuncts(e expr, list []expr) []expr {
	if l, ok := e.(logical); ok && l.and {
		return conjuncts(l.right, conjuncts(l.left, list))
	}
	return append(list, e)
}

package query

import (
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A Plan splits a condition into the part that indexes answer and the rest, which is tested on loaded documents. A
// document for which the indexed part is false is not charged and need not be read.
type Plan struct {
	// Predicates is the number of indexed paths in comparisons.
	Predicates int
	// Confines are predicates that are true for every document that is loaded.
	Confines []Predicate
	indexed  []expr
	rest     []expr
	perRow   bool // true if part of the condition depends on rows of FROM
}

// Plan splits the condition. indexed reports whether a path has an index.
func (q *Query) Plan(indexed func(rawjson.Path) bool) Plan {
	p := Plan{perRow: len(q.where) > 0}
	counted := map[int]bool{}
	for _, c := range q.document {
		part, isIndexed := q.indexedPart(c, indexed)
		if !isIndexed || !part.isAll {
			p.rest = append(p.rest, c)
		}
		if !isIndexed {
			continue
		}
		p.indexed = append(p.indexed, part.condition)
		found, _ := q.findPredicates(part.condition)
		p.Confines = append(p.Confines, found...)
		for _, path := range part.paths {
			counted[q.slotOf[pathKey(path)]] = true
		}
	}
	p.Predicates = len(counted)
	return p
}

// An indexedPart is the part of a condition that indexes can answer.
type indexedPart struct {
	condition expr // is true wherever the whole condition is true
	paths     []rawjson.Path
	isAll     bool // true if the part is the whole condition
}

// indexedPart returns the part of a condition that indexes can answer. ok is false if none exists. Indexes answer
// predicates, and AND, OR and NOT of predicates. If they answer only some terms of an AND, documents are loaded to test
// the remaining terms.
func (q *Query) indexedPart(e expr, indexed func(rawjson.Path) bool) (part indexedPart, ok bool) {
	part = indexedPart{condition: e, isAll: true}
	found, exact := q.findPredicates(e)
	if exact && !slices.ContainsFunc(found, func(f Predicate) bool { return !indexed(f.Path) }) {
		for _, f := range found {
			part.paths = append(part.paths, f.Path)
		}
		return part, true
	}
	switch e := e.(type) {
	case logicalExpr:
		terms := e
		terms.terms = nil
		for _, term := range e.terms {
			t, ok := q.indexedPart(term, indexed)
			part.isAll = part.isAll && ok && t.isAll
			switch {
			case ok:
				terms.terms, part.paths = append(terms.terms, t.condition), append(part.paths, t.paths...)
			case !e.and:
				return part, false
			}
		}
		part.condition = terms
		return part, len(terms.terms) > 0
	case negationExpr:
		part, ok = q.indexedPart(e.operand, indexed)
		part.condition = e
		return part, ok && part.isAll
	case callExpr:
		if p, isPath := e.args[0].(pathExpr); isPath && e.name == "IS_DEFINED" {
			path := q.paths[p.slot-q.extra]
			part.paths = []rawjson.Path{path}
			return part, indexed(path)
		}
	}
	return part, false
}

// Loads reports whether a document must be loaded, because the indexed part of the condition is true.
func (p Plan) Loads(slots *Slots) bool { return areAllTrue(p.indexed, slots) }

// Keeps reports whether the rest of the condition, which indexes do not answer, is true.
func (p Plan) Keeps(slots *Slots) bool { return areAllTrue(p.rest, slots) }

// IndexOnly reports whether indexes answer the whole condition.
func (p Plan) IndexOnly() bool { return len(p.rest) == 0 && !p.perRow }

// OnlySorted returns a Plan that excludes documents without one of the ORDER BY paths, because the index for ORDER BY
// does not contain them.
func (q *Query) OnlySorted(p Plan) Plan {
	p.indexed = slices.Clip(p.indexed)
	for _, o := range q.orders {
		p.indexed = append(p.indexed, newCall("IS_DEFINED", functions["IS_DEFINED"].fn, []expr{pathExpr{o.slot}}))
	}
	return p
}

func areAllTrue(conditions []expr, slots *Slots) bool {
	for _, c := range conditions {
		if !slots.spendSteps(1) || !c.evalRow(slots).IsTrue() {
			return false
		}
	}
	return true
}

// pathAndConstant returns the path and the constant in a comparison. ok is false if the operands are different.
func pathAndConstant(c comparisonExpr) (slot int, v Value, ok bool) {
	left, right := c.left, c.right
	if _, is := left.(constantExpr); is {
		left, right = right, left
	}
	prop, isPath := left.(pathExpr)
	value, isConstant := right.(constantExpr)
	return prop.slot, value.value, isPath && isConstant
}

// Equalities returns, for each path, the constant that the condition requires the path to equal. ok is false if one of
// the paths has none.
func (q *Query) Equalities(paths []rawjson.Path) (values []Value, ok bool) {
	for _, path := range paths {
		v, found := q.findEquality(q.document, path)
		if !found {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

func (q *Query) findEquality(list []expr, path rawjson.Path) (Value, bool) {
	for _, e := range list {
		c, is := e.(comparisonExpr)
		if !is || c.op != "=" {
			continue
		}
		if slot, v, ok := pathAndConstant(c); ok && isSamePath(q.paths[slot-q.extra], path) {
			return v, true
		}
	}
	return undefined, false
}

// listConjuncts appends the terms of an AND to list.
func listConjuncts(e expr, list []expr) []expr {
	l, ok := e.(logicalExpr)
	if !ok || !l.and {
		return append(list, e)
	}
	for _, term := range l.terms {
		list = listConjuncts(term, list)
	}
	return list
}

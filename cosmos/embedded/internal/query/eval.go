package query

import (
	"slices"
)

// Extract begins a document: it finds the values of all paths of the query in
// doc.
func (q *Query) Extract(doc []byte, slots *Slots) {
	slots.nextDocument()
	if paths := slots.values[q.extra:]; len(paths) > 0 {
		slots.spendSteps(1 + len(paths)/madePerStep)
		q.extractor.Extract(doc, paths)
	}
}

// Holds reports whether the condition is true of the document that Extract has
// read.
func (q *Query) Holds(slots *Slots) bool { return allTrue(q.document, slots) }

// Orders returns the paths of ORDER BY, none if there is no such clause.
func (q *Query) Orders() []Order { return q.orders }

// Offset is how many results to leave out.
func (q *Query) Offset() int { return q.offset }

// Limit is how many results to give, or NoLimit.
func (q *Query) Limit() int { return q.limit }

// Constant reports whether the query has no FROM: it asks about no document.
func (q *Query) Constant() bool { return q.constant }

// Aggregates reports whether results are made of several documents each.
func (q *Query) Aggregates() bool { return q.group != nil }

// SelectsValue reports whether the results are bare values.
func (q *Query) SelectsValue() bool { return q.written.value != nil }

// Counts reports whether the results are numbers of documents, for which an
// index is enough.
func (q *Query) Counts() bool {
	if q.group == nil || len(q.group.keys) > 0 || len(q.sources) > 0 {
		return false
	}
	for _, a := range q.group.aggregates {
		if a.function != "COUNT" {
			return false
		}
	}
	return true
}

// Streams reports whether each document gives at most one result, which
// depends on no other document. Only such a query has Gives and Project; any
// other has Results, or Collect.
func (q *Query) Streams() bool {
	return len(q.sources) == 0 && !q.distinct && q.group == nil && !q.constant
}

// Local reports whether the results of a document depend on no other: the
// query filters, joins and projects, and nothing else.
func (q *Query) Local() bool {
	return !q.distinct && q.group == nil && len(q.orders) == 0
}

// Simple reports whether the gateway can serve the query across partitions:
// it has no ORDER BY, TOP, OFFSET, DISTINCT, GROUP BY or aggregate.
func (q *Query) Simple() bool { return q.Local() && q.limit == NoLimit && q.offset == 0 }

// SortKey appends the values to sort by. They may be parts of the document.
func (q *Query) SortKey(dst []Value, slots *Slots) []Value {
	for _, o := range q.orders {
		dst = append(dst, ParseValue(slots.values[o.slot]))
	}
	return dst
}

// CompareKeys orders two sort keys as ORDER BY says.
func (q *Query) CompareKeys(a, b []Value) int {
	for i, o := range q.orders {
		if c := Compare(a[i], b[i]); c != 0 {
			if o.Descending {
				return -c
			}
			return c
		}
	}
	return 0
}

// Gives reports whether the query has a result for a document that the
// condition holds for: SELECT VALUE of something undefined has none. It says
// nothing about a query that does not stream.
func (q *Query) Gives(slots *Slots) bool {
	if !q.Streams() {
		return true
	}
	switch value := q.value.(type) {
	case nil, objectExpr:
		return true
	case verbatim:
		return value.rawValue(slots) != nil
	}
	return q.value.evalRow(slots).Kind != Undefined
}

// Project appends what the query selects of doc, for which it Gives a result.
func (q *Query) Project(dst, doc []byte, slots *Slots) []byte {
	switch value := q.value.(type) {
	case nil:
		return append(dst, doc...)
	case objectExpr:
		return value.appendTo(dst, slots)
	}
	dst, _ = appendExpr(dst, q.value, slots)
	return dst
}

// Results calls visit with each result of a document for which the condition
// holds, in order, until visit returns false. It is for queries that are
// Local. The result belongs to visit.
func (q *Query) Results(doc []byte, slots *Slots, visit func(result []byte) bool) {
	q.eachRow(slots, func() bool {
		result := q.writeResult(doc, slots)
		return result == nil || visit(result)
	})
}

func (q *Query) writeResult(doc []byte, slots *Slots) []byte {
	if q.star {
		return slices.Clone(doc)
	}
	result, ok := appendExpr(nil, q.value, slots)
	if !ok || !slots.spendSteps(1+len(result)/copiedPerStep) {
		return nil
	}
	return result
}

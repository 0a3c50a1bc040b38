package query

import (
	"slices"
)

// Extract starts the evaluation of a document: it stores the values of all paths of the query in
// slots.
func (q *Query) Extract(doc []byte, slots *Slots) {
	slots.nextDocument()
	if paths := slots.values[q.extra:]; len(paths) > 0 {
		slots.spendSteps(1 + len(paths)/madePerStep)
		q.extractor.Extract(doc, paths)
	}
}

// Holds reports whether the condition is true for the document that Extract read.
func (q *Query) Holds(slots *Slots) bool { return areAllTrue(q.document, slots) }

// Source returns the query whose results q reads instead of documents, or nil.
func (q *Query) Source() *Query { return q.source }

// HasWindowedSource reports whether a source has TOP, OFFSET or ORDER BY.
func (q *Query) HasWindowedSource() bool {
	s := q.source
	return s != nil && (s.maximum != NoLimit || len(s.written.orderBy) > 0 || s.HasWindowedSource())
}

// Base returns the innermost source of q, which reads the documents, or q if it has no source.
func (q *Query) Base() *Query {
	for q.source != nil {
		q = q.source
	}
	return q
}

// Orders returns the paths of ORDER BY, or nil.
func (q *Query) Orders() []Order { return q.orders }

// Offset returns the number of results to skip.
func (q *Query) Offset() int { return q.skipped }

// Limit returns the maximum number of results, or NoLimit.
func (q *Query) Limit() int { return q.maximum }

// Constant reports whether the query has no FROM, and so reads no document.
func (q *Query) Constant() bool { return q.constant }

// Aggregates reports whether a result combines several documents.
func (q *Query) Aggregates() bool { return q.group != nil }

// SelectsValue reports whether the query is a SELECT VALUE.
func (q *Query) SelectsValue() bool { return q.written.value != nil }

// Counts reports whether every result is a number of documents, which an index can count.
func (q *Query) Counts() bool {
	if q.source != nil || q.group == nil || len(q.group.keys) > 0 || len(q.sources) > 0 {
		return false
	}
	for _, a := range q.group.aggregates {
		if a.function != "COUNT" {
			return false
		}
	}
	return true
}

// Streams reports whether each document has at most one result, which depends on no other
// document. Use HasResult and Project for such a query, otherwise Results or Collect.
func (q *Query) Streams() bool {
	return q.source == nil && len(q.sources) == 0 && !q.distinct && q.group == nil && !q.constant
}

// Local reports whether the results of a document depend on no other document: the query only
// filters, joins and projects.
func (q *Query) Local() bool {
	return q.source == nil && !q.distinct && q.group == nil && len(q.orders) == 0
}

// Simple reports whether the gateway can serve the query across partitions:
// it has no ORDER BY, TOP, OFFSET, DISTINCT, GROUP BY or aggregate.
func (q *Query) Simple() bool { return q.Local() && q.maximum == NoLimit && q.skipped == 0 }

// SortKey appends the values to sort by. They may share the memory of the document.
func (q *Query) SortKey(dst []Value, slots *Slots) []Value {
	for _, o := range q.orders {
		dst = append(dst, ParseValue(slots.values[o.slot]))
	}
	return dst
}

// CompareKeys compares two sort keys in the order of ORDER BY.
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

// HasResult reports whether a document for which the condition holds has a result: SELECT VALUE of an
// undefined value has no result. It always returns true for a query that does not stream.
func (q *Query) HasResult(slots *Slots) bool {
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

// Project appends the query's projection of doc. The caller has checked HasResult for doc.
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

// Results calls visit with each result of a document for which the condition holds, in order,
// until visit returns false. It is only for queries that are Local. visit may retain the result.
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

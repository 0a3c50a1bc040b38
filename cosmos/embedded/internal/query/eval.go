package query

import (
	"slices"
)

// Extract starts the evaluation for a document. It stores the values of all paths of the query in slots.
func (q *Query) Extract(doc []byte, slots *Slots) {
	slots.nextDocument()
	if paths := slots.values[q.extra:]; len(paths) > 0 {
		slots.spendSteps(1 + len(paths)/madePerStep)
		q.extractor.Extract(doc, paths)
	}
}

// Holds reports whether the condition is true for the extracted document.
func (q *Query) Holds(slots *Slots) bool { return areAllTrue(q.document, slots) }

// Source returns the subquery whose results q reads, or nil if q reads documents.
func (q *Query) Source() *Query { return q.source }

// HasWindowedSource reports whether any Source has TOP, OFFSET or ORDER BY.
func (q *Query) HasWindowedSource() bool {
	s := q.source
	return s != nil && (s.maximum != NoLimit || len(s.written.orderBy) > 0 || s.HasWindowedSource())
}

// Base returns the innermost Source, which reads the documents. Without a Source it returns q.
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

// Constant reports whether the query has no FROM, so that it reads no document.
func (q *Query) Constant() bool { return q.constant }

// Aggregates reports whether a result may combine several documents.
func (q *Query) Aggregates() bool { return q.group != nil }

// SelectsValue reports whether the query is a SELECT VALUE.
func (q *Query) SelectsValue() bool { return q.written.value != nil }

// Counts reports whether every result is a count of documents, which an index can compute.
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

// Streams reports whether each document has at most one result, independent of all other documents. Then use HasResult
// and Project, otherwise Results or Collect.
func (q *Query) Streams() bool {
	return q.source == nil && len(q.sources) == 0 && !q.distinct && q.group == nil && !q.constant
}

// Local reports whether the results of a document are independent of all other documents, because the query only
// filters, joins and projects.
func (q *Query) Local() bool {
	return q.source == nil && !q.distinct && q.group == nil && len(q.orders) == 0
}

// Simple reports whether Azure's gateway can execute the query across partitions: it has no ORDER BY, TOP, OFFSET,
// DISTINCT, GROUP BY or aggregate.
func (q *Query) Simple() bool { return q.Local() && q.maximum == NoLimit && q.skipped == 0 }

// SortKey appends the sort key of a document. The values may share memory with the document.
func (q *Query) SortKey(dst []Value, slots *Slots) []Value {
	for _, o := range q.orders {
		dst = append(dst, ParseValue(slots.values[o.slot]))
	}
	return dst
}

// CompareKeys compares two sort keys as ORDER BY does.
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

// HasResult reports whether a document that meets the condition has a result, which it does not if SELECT VALUE is
// undefined. For queries that do not stream, it always returns true.
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

// Project appends the result for doc. HasResult must be true.
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

// Results calls visit for each result of a document that meets the condition, until visit returns false. The query must
// be Local. visit may retain the result.
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

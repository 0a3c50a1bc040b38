package query

import "github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"

// Slots is the number of values that Extract fills in.
func (q *Query) Slots() int { return q.extractor.Slots() }

// Extract finds the values of all paths of the query in doc.
func (q *Query) Extract(doc []byte, slots [][]byte) {
	if len(slots) > 0 {
		q.extractor.Extract(doc, slots)
	}
}

// Holds reports whether the condition is true of doc.
func (q *Query) Holds(doc []byte) bool {
	slots := make([][]byte, q.Slots())
	q.Extract(doc, slots)
	return q.where == nil || q.where.eval(slots).IsTrue()
}

// Orders returns the paths of ORDER BY, none if there is no such clause.
func (q *Query) Orders() []Order { return q.orders }

// Offset is how many results to leave out.
func (q *Query) Offset() int { return q.offset }

// Limit is how many results to give, or NoLimit.
func (q *Query) Limit() int { return q.limit }

// Aggregates reports whether the result is one value for all documents.
func (q *Query) Aggregates() bool { return q.aggregate != "" }

// Counts reports whether the result is a number of documents.
func (q *Query) Counts() bool { return q.aggregate == "COUNT" }

// Simple reports whether the query only filters and projects, so that the
// gateway can serve it across partitions.
func (q *Query) Simple() bool {
	return q.aggregate == "" && len(q.orders) == 0 && q.limit == NoLimit && q.offset == 0
}

// SortKey appends the values to sort by. They may be parts of the document.
func (q *Query) SortKey(dst []Value, slots [][]byte) []Value {
	for _, o := range q.orders {
		dst = append(dst, ParseValue(slots[o.slot]))
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
// condition holds for: SELECT VALUE of something undefined has none.
func (q *Query) Gives(slots [][]byte) bool {
	if q.value == nil || q.aggregate != "" {
		return true
	}
	if prop, ok := q.value.(property); ok {
		return slots[prop.slot] != nil
	}
	return q.value.eval(slots).Kind != Undefined
}

// Project appends what the query selects of doc, for which it Gives a result.
func (q *Query) Project(dst, doc []byte, slots [][]byte) []byte {
	switch {
	case q.star:
		return append(dst, doc...)
	case q.value != nil:
		dst, _ = appendExpr(dst, q.value, slots)
		return dst
	}
	dst = append(dst, '{')
	first := true
	for _, c := range q.columns {
		mark := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuoted(dst, c.name)
		dst = append(dst, ':')
		var ok bool
		if dst, ok = appendExpr(dst, c.expr, slots); !ok {
			dst = dst[:mark] // an undefined column is left out
			continue
		}
		first = false
	}
	return append(dst, '}')
}

// appendExpr gives a property as it is written, so that its number or string
// keeps its form.
func appendExpr(dst []byte, e expr, slots [][]byte) ([]byte, bool) {
	if prop, ok := e.(property); ok {
		return append(dst, slots[prop.slot]...), slots[prop.slot] != nil
	}
	v := e.eval(slots)
	return v.Append(dst), v.Kind != Undefined
}

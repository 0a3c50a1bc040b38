package query

// A subqueryExpr is a subquery that is evaluated for every row of the enclosing query.
type subqueryExpr struct {
	kind string // "EXISTS", "ARRAY", or "" for a single value
	at   int
	body *selection
}

// combinesDocuments reports whether results of a subquery over the container depend on several documents.
func (n subqueryNode) combinesDocuments() bool {
	b := n.body
	if len(b.sources) == 0 {
		return false
	}
	if b.distinct || b.top != nil || b.limit != nil || b.orderBy != nil || b.groupBy != nil || hasAggregate(b) {
		return true
	}
	inner, ok := b.sources[0].from.(subqueryNode)
	return ok && inner.combinesDocuments()
}

func (e subqueryExpr) evalRow(slots *Slots) Value {
	switch e.kind {
	case "EXISTS":
		found := false
		e.body.eachResult(slots, func([]byte) bool {
			found = true
			return false
		})
		return boolValue(found)
	case "ARRAY":
		var b listBuilder
		e.body.eachResult(slots, func(raw []byte) bool {
			b.addItem(raw)
			return slots.spendMade(len(raw))
		})
		return b.arrayValue()
	}
	return slots.parseValue(e.singleResult(slots))
}

func (e subqueryExpr) rawValue(slots *Slots) []byte {
	if e.kind != "" {
		return e.evalRow(slots).Append(nil)
	}
	return e.singleResult(slots)
}

// singleResult returns the only result of the subquery, or nil if none exists. It records a failure if there are
// more.
func (e subqueryExpr) singleResult(slots *Slots) (found []byte) {
	e.body.eachResult(slots, func(raw []byte) bool {
		if found != nil {
			slots.recordFailure(e.at, tooMany)
			return false
		}
		found = raw
		return true
	})
	return found
}

package query

// A subqueryExpr is evaluated for every row of the enclosing query.
type subqueryExpr struct {
	kind string // "" for a single value, "EXISTS" or "ARRAY"
	at   int
	body *selection
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

// singleResult returns the only result, or nil. A second result is a failure.
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

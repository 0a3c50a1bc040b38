package query

// A subquery is evaluated for every row of the query around it.
type subquery struct {
	kind string // "" for a single value, "EXISTS" or "ARRAY"
	at   int
	body *selection
}

func (e subquery) eval(slots *Slots) Value {
	switch e.kind {
	case "EXISTS":
		found := false
		e.body.results(slots, func([]byte) bool {
			found = true
			return false
		})
		return boolean(found)
	case "ARRAY":
		var b listBuilder
		e.body.results(slots, func(raw []byte) bool {
			b.add(raw)
			return slots.spendMade(len(raw))
		})
		return b.value()
	}
	return slots.parse(e.single(slots))
}

func (e subquery) raw(slots *Slots) []byte {
	if e.kind != "" {
		return e.eval(slots).Append(nil)
	}
	return e.single(slots)
}

// single gives the only result, nil if none exists. Two are a failure.
func (e subquery) single(slots *Slots) (found []byte) {
	e.body.results(slots, func(raw []byte) bool {
		if found != nil {
			slots.fail(e.at, tooMany)
			return false
		}
		found = raw
		return true
	})
	return found
}

package query

// An aggregate is one call of an aggregate function in SELECT.
type aggregate struct {
	function string // name of the function in upper case
	arg      expr
	slot     int // slot in which the result is stored
}

func isAggregate(name string) bool {
	switch name {
	case "COUNT", "SUM", "MIN", "MAX", "AVG":
		return true
	}
	return false
}

// hasAggregate reports whether SELECT contains an aggregate, not counting its subqueries.
func hasAggregate(s *selectNode) bool {
	found := false
	look := func(n exprNode) bool {
		c, ok := n.(callNode)
		found = found || ok && isAggregate(c.name)
		return !found
	}
	walkNode(s.value, look)
	for _, c := range s.columns {
		walkNode(c.expr, look)
	}
	return found
}

// An accumulator computes the value of one aggregate.
//
// Undefined values do not count. A value of a wrong type makes the result undefined: for SUM
// and AVG any value that is not a number, for MIN and MAX an array or object. Without values,
// SUM and COUNT are 0, and all other aggregates are undefined.
type accumulator struct {
	count   int
	sum     float64
	best    Value
	invalid bool
}

func (a *accumulator) addValue(function string, v Value) {
	if v.Kind == Undefined {
		return
	}
	a.count++
	switch function {
	case "SUM", "AVG":
		a.sum += v.Num
		a.invalid = a.invalid || v.Kind != Number
	case "MIN", "MAX":
		a.invalid = a.invalid || v.Kind >= Array
		c := Compare(v, a.best)
		if a.count == 1 || (c < 0) == (function == "MIN") && c != 0 {
			a.best = v.Clone()
		}
	}
}

func (a *accumulator) finalValue(function string) Value {
	switch {
	case function == "COUNT":
		return numberValue(float64(a.count))
	case a.invalid:
		return undefined
	case function == "SUM":
		return numberValue(a.sum)
	case a.count == 0:
		return undefined
	case function == "AVG":
		return numberValue(a.sum / float64(a.count))
	}
	return a.best
}

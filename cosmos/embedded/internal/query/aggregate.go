package query

// An Aggregate takes the documents of one query and gives one value.
//
// Undefined values do not count. A value of a wrong type makes the whole
// result undefined, which is no result at all: for SUM and AVG anything but
// a number, for MIN and MAX arrays and objects. SUM and COUNT of nothing are
// 0, the others have no result.
type Aggregate struct {
	query   *Query
	count   int
	sum     float64
	best    Value
	invalid bool
}

// NewAggregate starts the aggregate of a query that Aggregates.
func (q *Query) NewAggregate() *Aggregate { return &Aggregate{query: q} }

// Add takes in one document that the condition holds for.
func (a *Aggregate) Add(slots [][]byte) {
	v := a.query.value.eval(slots)
	if v.Kind == Undefined {
		return
	}
	a.count++
	switch a.query.aggregate {
	case "SUM", "AVG":
		a.sum += v.Num
		a.invalid = a.invalid || v.Kind != Number
	case "MIN", "MAX":
		a.invalid = a.invalid || v.Kind >= Array
		c := Compare(v, a.best)
		if a.count == 1 || (c < 0) == (a.query.aggregate == "MIN") && c != 0 {
			a.best = v.Clone()
		}
	}
}

// Result returns the value, Undefined if there is none.
func (a *Aggregate) Result() Value {
	switch {
	case a.query.aggregate == "COUNT":
		return Value{Kind: Number, Num: float64(a.count)}
	case a.invalid:
		return undefined
	case a.query.aggregate == "SUM":
		return Value{Kind: Number, Num: a.sum}
	case a.count == 0:
		return undefined
	case a.query.aggregate == "AVG":
		return Value{Kind: Number, Num: a.sum / float64(a.count)}
	}
	return a.best
}

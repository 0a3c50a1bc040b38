package query

type comparison struct {
	op          string
	left, right expr
}

func (e comparison) eval(slots *Slots) Value {
	return compareBy(e.op, e.left.eval(slots), e.right.eval(slots))
}

// compareBy compares equal for any two defined values, but by size only two
// values of one type that has an order.
func compareBy(op string, a, b Value) Value {
	if a.Kind == Undefined || b.Kind == Undefined {
		return undefined
	}
	switch op {
	case "=":
		return boolean(equal(a, b))
	case "!=":
		return boolean(!equal(a, b))
	}
	if a.Kind != b.Kind || a.Kind >= Array {
		return undefined
	}
	c := Compare(a, b)
	switch op {
	case "<":
		return boolean(c < 0)
	case "<=":
		return boolean(c <= 0)
	case ">":
		return boolean(c > 0)
	}
	return boolean(c >= 0)
}

// A logical joins conditions; undefined takes part, as in SQL's unknown.
type logical struct {
	and         bool
	left, right expr
}

func (e logical) eval(slots *Slots) Value {
	left := e.left.eval(slots)
	if left.Kind == Bool && left.Bool != e.and {
		return left // false AND …, true OR …
	}
	right := e.right.eval(slots)
	if right.Kind == Bool && right.Bool != e.and {
		return right
	}
	if left.Kind != Bool || right.Kind != Bool {
		return undefined
	}
	return boolean(e.and)
}

type negation struct{ operand expr }

func (e negation) eval(slots *Slots) Value {
	if v := e.operand.eval(slots); v.Kind == Bool {
		return boolean(!v.Bool)
	}
	return undefined
}

type membership struct {
	operand expr
	list    []expr
}

func (e membership) eval(slots *Slots) Value {
	v := e.operand.eval(slots)
	if v.Kind == Undefined {
		return undefined
	}
	result := boolean(false)
	for _, item := range e.list {
		switch is := compareBy("=", v, item.eval(slots)); {
		case is.IsTrue():
			return is
		case is.Kind == Undefined:
			result = undefined
		}
	}
	return result
}

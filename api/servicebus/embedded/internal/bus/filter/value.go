package filter

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"time"
)

func constantValue(v any) evaluator { return func(Message) (any, error) { return v, nil } }

func propertyValue(of propertyName) evaluator {
	return func(m Message) (any, error) {
		if of.system {
			return Normalize(m.System(of.name)), nil
		}
		v, _ := m.Property(of.name)
		return Normalize(v), nil
	}
}

func propertyExists(of propertyName) evaluator {
	return func(m Message) (any, error) {
		if of.system {
			return m.System(of.name) != nil, nil
		}
		_, there := m.Property(of.name)
		return there, nil
	}
}

func isNull(of evaluator, want bool) evaluator {
	return func(m Message) (any, error) {
		v, err := of(m)
		if err != nil {
			return nil, err
		}
		return (v == nil) == want, nil
	}
}

// logicalAnd returns the evaluator of AND: the result is false if one operand is false, even if the second is unknown.
func logicalAnd(left, right evaluator) evaluator { return newLogical(left, right, false) }

// logicalOr returns the evaluator of OR: the result is true if one operand is true, even if the second is unknown.
func logicalOr(left, right evaluator) evaluator { return newLogical(left, right, true) }

// newLogical returns the evaluator of AND or OR. The result is winner if at least one operand equals winner. An operand
// that is not a bool is unknown.
func newLogical(left, right evaluator, winner bool) evaluator {
	return func(m Message) (any, error) {
		l, err := left(m)
		if err != nil || l == winner {
			return l, err
		}
		r, err := right(m)
		if err != nil || r == winner {
			return r, err
		}
		if l == !winner && r == !winner {
			return !winner, nil
		}
		return nil, nil
	}
}

func logicalNot(of evaluator) evaluator {
	return func(m Message) (any, error) {
		v, err := of(m)
		if b, ok := v.(bool); ok {
			return !b, err
		}
		return nil, err
	}
}

// evaluateBoth returns an evaluator that evaluates both operands and passes their values to then.
func evaluateBoth(left, right evaluator, then func(l, r any) (any, error)) evaluator {
	return func(m Message) (any, error) {
		l, err := left(m)
		if err != nil {
			return nil, err
		}
		r, err := right(m)
		if err != nil {
			return nil, err
		}
		return then(l, r)
	}
}

func newComparison(op string, left, right evaluator) evaluator {
	return evaluateBoth(left, right, func(l, r any) (any, error) {
		order, ok := orderOf(l, r)
		if !ok {
			return nil, nil
		}
		switch op {
		case "=":
			return order == 0, nil
		case "<>", "!=":
			return order != 0, nil
		case "<":
			return order < 0, nil
		case "<=":
			return order <= 0, nil
		case ">":
			return order > 0, nil
		default:
			return order >= 0, nil
		}
	})
}

// Equal reports whether two values have the same type and are equal. Numbers of different types
// are compared by value.
func Equal(a, b any) bool {
	order, ok := orderOf(Normalize(a), Normalize(b))
	return ok && order == 0
}

// orderOf compares two values. It returns false if their types differ.
func orderOf(l, r any) (order int, ok bool) {
	switch a := l.(type) {
	case string:
		b, ok := r.(string)
		return cmp.Compare(a, b), ok
	case bool:
		b, ok := r.(bool)
		switch {
		case a == b:
			return 0, ok
		case b:
			return -1, ok
		}
		return 1, ok
	case time.Time:
		b, ok := r.(time.Time)
		return a.Compare(b), ok
	case []byte:
		b, ok := r.([]byte)
		return bytes.Compare(a, b), ok
	case int64:
		if b, ok := r.(int64); ok {
			return cmp.Compare(a, b), true
		}
		b, ok := r.(float64)
		return cmp.Compare(float64(a), b), ok && !math.IsNaN(b)
	case float64:
		b, ok := r.(float64)
		if n, isInt := r.(int64); isInt {
			b, ok = float64(n), true
		}
		return cmp.Compare(a, b), ok && !math.IsNaN(a) && !math.IsNaN(b)
	}
	return 0, false
}

// newArithmetic returns the evaluator of an arithmetic operator. The result is nil if an operand is nil. Addition also
// concatenates strings.
func newArithmetic(op string, left, right evaluator) evaluator {
	return evaluateBoth(left, right, func(l, r any) (any, error) {
		if l == nil || r == nil {
			return nil, nil
		}
		if a, ok := l.(string); ok && op == "+" {
			if b, ok := r.(string); ok {
				return a + b, nil
			}
		}
		if a, ok := l.(int64); ok {
			if b, ok := r.(int64); ok {
				return computeIntegers(op, a, b)
			}
		}
		a, okA := toFloat(l)
		b, okB := toFloat(r)
		if !okA || !okB {
			return nil, fmt.Errorf("%w: %s needs numbers, not %T and %T", ErrEvaluate, op, l, r)
		}
		return computeFloats(op, a, b), nil
	})
}

func toFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func computeIntegers(op string, a, b int64) (any, error) {
	if b == 0 && (op == "/" || op == "%") {
		return nil, fmt.Errorf("%w: division by zero", ErrEvaluate)
	}
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/":
		return a / b, nil
	default:
		return a % b, nil
	}
}

func computeFloats(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	default:
		return math.Mod(a, b)
	}
}

// matchesAny returns the evaluator of IN. The result is true if left equals an item of list. If no item is equal, the
// result is unknown if an item is unknown, otherwise false.
func matchesAny(left evaluator, list []evaluator) evaluator {
	return func(m Message) (any, error) {
		l, err := left(m)
		if err != nil {
			return nil, err
		}
		result := any(false)
		for _, n := range list {
			r, err := n(m)
			if err != nil {
				return nil, err
			}
			switch order, ok := orderOf(l, r); {
			case ok && order == 0:
				return true, nil
			case !ok:
				result = nil
			}
		}
		return result, nil
	}
}

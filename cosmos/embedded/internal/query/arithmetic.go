package query

import "math"

// An arithmeticExpr applies operators from left to right. The result is undefined unless all operands are numbers
// (strings for ||).
type arithmeticExpr struct {
	first expr
	rest  []arithmeticStep
}

type arithmeticStep struct {
	op      func(a, b Value) Value
	operand expr
}

func (e arithmeticExpr) evalRow(slots *Slots) Value {
	v := e.first.evalRow(slots)
	for _, step := range e.rest {
		v = step.op(v, step.operand.evalRow(slots))
		if !slots.spendMade(len(v.Text)) {
			return undefined
		}
	}
	return v
}

// operations are the binary operators except logical operators and comparisons.
var operations = map[string]func(a, b Value) Value{
	"+":   newNumberOperator(func(a, b float64) float64 { return a + b }),
	"-":   newNumberOperator(func(a, b float64) float64 { return a - b }),
	"*":   newNumberOperator(func(a, b float64) float64 { return a * b }),
	"/":   newNumberOperator(func(a, b float64) float64 { return a / b }),
	"%":   newNumberOperator(math.Mod),
	"|":   newBitOperator(func(a, b int32) float64 { return float64(a | b) }),
	"^":   newBitOperator(func(a, b int32) float64 { return float64(a ^ b) }),
	"&":   newBitOperator(func(a, b int32) float64 { return float64(a & b) }),
	"<<":  newBitOperator(func(a, b int32) float64 { return float64(a << (b & 31)) }),
	">>":  newBitOperator(func(a, b int32) float64 { return float64(a >> (b & 31)) }),
	">>>": newBitOperator(func(a, b int32) float64 { return float64(uint32(a) >> (b & 31)) }),
	"||":  func(a, b Value) Value { return concatText([]Value{a, b}) },
}

// numberValue returns f as a Value. It returns undefined if JSON cannot represent f.
func numberValue(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return undefined
	}
	return Value{Kind: Number, Num: f}
}

func newNumberOperator(op func(a, b float64) float64) func(a, b Value) Value {
	return func(a, b Value) Value {
		if a.Kind != Number || b.Kind != Number {
			return undefined
		}
		return numberValue(op(a.Num, b.Num))
	}
}

// newBitOperator converts the operands to 32 bits, as JavaScript does.
func newBitOperator(op func(a, b int32) float64) func(a, b Value) Value {
	return newNumberOperator(func(a, b float64) float64 { return op(toInt32(a), toInt32(b)) })
}

// toInt32 converts f as JavaScript does: it drops the fraction and wraps around.
func toInt32(f float64) int32 {
	f = math.Mod(math.Trunc(f), 1<<32)
	if f < 0 {
		f += 1 << 32
	}
	return int32(uint32(f)) //nolint:gosec // wraps, as specified
}

// A signExpr is a unary + or -.
type signExpr struct {
	operand expr
	factor  float64
}

func (e signExpr) evalRow(slots *Slots) Value {
	v := e.operand.evalRow(slots)
	if v.Kind != Number {
		return undefined
	}
	return Value{Kind: Number, Num: v.Num * e.factor}
}

type complementExpr struct{ operand expr }

func (e complementExpr) evalRow(slots *Slots) Value {
	v := e.operand.evalRow(slots)
	if v.Kind != Number {
		return undefined
	}
	return Value{Kind: Number, Num: float64(^toInt32(v.Num))}
}

// maxText is the maximum length of a string that a query can build, because a longer one would not fit on a result
// page.
const maxText = 4 << 20

// concatText concatenates strings. The result is undefined if one of the values is not a string.
func concatText(values []Value) Value {
	size := 0
	for _, v := range values {
		if size += len(v.Text); v.Kind != String || size > maxText {
			return undefined
		}
	}
	text := make([]byte, 0, size)
	for _, v := range values {
		text = append(text, v.Text...)
	}
	return Value{Kind: String, Text: text}
}

package query

import "math"

var mathFunctions = map[string]function{
	"ABS":     ofNumber(math.Abs),
	"CEILING": ofNumber(math.Ceil),
	"FLOOR":   ofNumber(math.Floor),
	"TRUNC":   ofNumber(math.Trunc),
	"SQRT":    ofNumber(math.Sqrt),
	"SQUARE":  ofNumber(func(f float64) float64 { return f * f }),
	"EXP":     ofNumber(math.Exp),
	"LOG10":   ofNumber(logarithm10),
	"SIN":     ofNumber(math.Sin),
	"COS":     ofNumber(math.Cos),
	"TAN":     ofNumber(preciseTan),
	"COT":     ofNumber(func(f float64) float64 { return 1 / preciseTan(f) }),
	"ASIN":    ofNumber(math.Asin),
	"ACOS":    ofNumber(math.Acos),
	"ATAN":    ofNumber(math.Atan),
	"DEGREES": ofNumber(func(f float64) float64 { return f * 180 / math.Pi }),
	"RADIANS": ofNumber(func(f float64) float64 { return f * math.Pi / 180 }),
	"SIGN": ofNumber(func(f float64) float64 {
		if f == 0 {
			return 0
		}
		return math.Copysign(1, f)
	}),
	"PI":    {0, 0, func([]Value) Value { return numberValue(math.Pi) }},
	"POWER": ofTwo(math.Pow),
	"ATN2":  ofTwo(math.Atan2),
	"LOG": {1, 2, func(a []Value) Value {
		if !areAll(Number, a) {
			return undefined
		}
		if len(a) == 1 {
			return numberValue(math.Log(a[0].Num))
		}
		return numberValue(logarithm(a[0].Num, a[1].Num))
	}},
	"ROUND":     {1, 2, roundNumber},
	"NUMBERBIN": {1, 2, numberBin},
}

func ofNumber(f func(float64) float64) function {
	return function{1, 1, func(a []Value) Value {
		if a[0].Kind != Number {
			return undefined
		}
		return numberValue(f(a[0].Num))
	}}
}

func ofTwo(f func(a, b float64) float64) function {
	op := newNumberOperator(f)
	return function{2, 2, func(a []Value) Value { return op(a[0], a[1]) }}
}

// roundNumber rounds to a number of decimal places. It rounds a half away from zero.
func roundNumber(a []Value) Value {
	if !areAll(Number, a) {
		return undefined
	}
	if len(a) == 1 {
		return numberValue(math.Round(a[0].Num))
	}
	digits, ok := a[1].asInt64()
	if !ok || digits < -15 || digits > 15 {
		return undefined
	}
	unit := math.Pow(10, math.Abs(float64(digits)))
	if digits < 0 {
		return numberValue(math.Round(a[0].Num/unit) * unit)
	}
	return numberValue(math.Round(a[0].Num*unit) / unit)
}

// numberBin rounds down to a multiple of the second argument, which defaults to 1.
func numberBin(a []Value) Value {
	size := 1.0
	if len(a) == 2 {
		size = a[1].Num
	}
	if !areAll(Number, a) || size == 0 {
		return undefined
	}
	return numberValue(math.Floor(a[0].Num/size) * size)
}

// The integer functions compute with 64 bits and accept only whole numbers, although JSON numbers are exact only up to
// 2^53.
var integerFunctions = map[string]function{
	"INTADD": newIntegerFunction(func(a, b int64) (int64, bool) { return a + b, true }),
	"INTSUB": newIntegerFunction(func(a, b int64) (int64, bool) { return a - b, true }),
	"INTMUL": newIntegerFunction(func(a, b int64) (int64, bool) { return a * b, true }),
	"INTDIV": newIntegerFunction(func(a, b int64) (int64, bool) {
		if b == 0 {
			return 0, false
		}
		return a / b, true
	}),
	"INTMOD": newIntegerFunction(func(a, b int64) (int64, bool) {
		if b == 0 {
			return 0, false
		}
		return a % b, true
	}),
	"INTBITAND":        newIntegerFunction(func(a, b int64) (int64, bool) { return a & b, true }),
	"INTBITOR":         newIntegerFunction(func(a, b int64) (int64, bool) { return a | b, true }),
	"INTBITXOR":        newIntegerFunction(func(a, b int64) (int64, bool) { return a ^ b, true }),
	"INTBITLEFTSHIFT":  newIntegerFunction(func(a, b int64) (int64, bool) { return a << (b & 63), b >= 0 }),
	"INTBITRIGHTSHIFT": newIntegerFunction(func(a, b int64) (int64, bool) { return a >> (b & 63), b >= 0 }),
	"INTBITNOT": {1, 1, func(a []Value) Value {
		n, ok := a[0].asInt64()
		if !ok {
			return undefined
		}
		return numberValue(float64(^n))
	}},
}

func newIntegerFunction(f func(a, b int64) (int64, bool)) function {
	return function{2, 2, func(args []Value) Value {
		a, ok := args[0].asInt64()
		b, whole := args[1].asInt64()
		if !ok || !whole {
			return undefined
		}
		result, ok := f(a, b)
		if !ok {
			return undefined
		}
		return numberValue(float64(result))
	}}
}

package query

import (
	"maps"
	"math"
)

// unlimitedArguments is maxArgs of a function without a maximum.
const unlimitedArguments = math.MaxInt32

// A function has minArgs to maxArgs arguments. fn returns undefined if an argument has a wrong type, or where Cosmos DB
// documents it.
type function struct {
	minArgs, maxArgs int
	fn               func(args []Value) Value
}

// functionSteps count the steps of functions that do more than read each argument once.
var functionSteps = map[string]func(args []Value) int{
	"ARRAY_CONTAINS": containsSteps, "ARRAY_CONTAINS_ANY": setSteps, "ARRAY_CONTAINS_ALL": setSteps,
	"LOG": preciseSteps, "LOG10": preciseSteps, "TAN": preciseSteps, "COT": preciseSteps,
	"TRIM": trimSteps, "LTRIM": trimSteps, "RTRIM": trimSteps,
	"SETINTERSECT": setSteps, "SETUNION": setSteps, "SETDIFFERENCE": setSteps, "SETEQUAL": setSteps,
	"ARRAY_AVG": setSteps, "ARRAY_MAX": setSteps, "ARRAY_MEDIAN": setSteps, "ARRAY_MIN": setSteps, "ARRAY_SUM": setSteps,
	"DATETIMEFORMAT":  func(a []Value) int { return 4 * len(a[1].Text) },
	"CONTAINS_ALL_CI": fullTextSteps, "CONTAINS_ALL_CS": fullTextSteps, "CONTAINS_ANY_CI": fullTextSteps, "CONTAINS_ANY_CS": fullTextSteps,
	"FULLTEXTCONTAINS": fullTextSteps, "FULLTEXTCONTAINSALL": fullTextSteps, "FULLTEXTCONTAINSANY": fullTextSteps,
}

// functions are the functions that depend only on their arguments.
var functions = collectFunctions(typeFunctions, stringFunctions, conversionFunctions, mathFunctions, integerFunctions, arrayFunctions, dateFunctions, calendarFunctions)

func collectFunctions(tables ...map[string]function) map[string]function {
	all := map[string]function{}
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

// argumentCounts returns the minimum and maximum number of arguments of a function.
func argumentCounts(name string) (minArgs, maxArgs int, ok bool) {
	if isAggregate(name) {
		return 1, 1, true
	}
	if f, ok := functions[name]; ok {
		return f.minArgs, f.maxArgs, true
	}
	f, ok := specialArguments[name]
	return f[0], f[1], ok
}

var typeFunctions = map[string]function{
	"IS_DEFINED":   typeCheck(func(v Value) bool { return v.Kind != Undefined }),
	"IS_NULL":      isKind(Null),
	"IS_BOOL":      isKind(Bool),
	"IS_NUMBER":    isKind(Number),
	"IS_STRING":    isKind(String),
	"IS_ARRAY":     isKind(Array),
	"IS_OBJECT":    isKind(Object),
	"IS_PRIMITIVE": typeCheck(func(v Value) bool { return v.Kind > Undefined && v.Kind < Array }),
	"IS_INTEGER": typeCheck(func(v Value) bool {
		return v.Kind == Number && v.Num == math.Trunc(v.Num) && math.Abs(v.Num) <= 1<<63 // the limits of 64-bit integers, as float64
	}),
	"IS_FINITE_NUMBER": typeCheck(func(v Value) bool { return v.Kind == Number && v.isFinite() }),
	"IIF": {3, 3, func(a []Value) Value {
		if a[0].IsTrue() {
			return a[1]
		}
		return a[2]
	}},
	"CHOOSE": {2, unlimitedArguments, func(a []Value) Value {
		i, ok := a[0].asInt64()
		if !ok || i < 1 || i >= int64(len(a)) {
			return undefined
		}
		return a[i]
	}},
}

// typeCheck returns a function that tests the type of a value. For undefined, the result is false.
func typeCheck(is func(v Value) bool) function {
	return function{1, 1, func(a []Value) Value { return boolValue(is(a[0])) }}
}

func isKind(k Kind) function { return typeCheck(func(v Value) bool { return v.Kind == k }) }

// areAll reports whether all values have the kind k.
func areAll(k Kind, values []Value) bool {
	for _, v := range values {
		if v.Kind != k {
			return false
		}
	}
	return true
}

func textValue(s string) Value { return Value{Kind: String, Text: []byte(s)} }

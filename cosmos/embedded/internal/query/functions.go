package query

import "bytes"

type function struct {
	args int
	fn   func(args []Value) Value
}

// functions are all scalar functions the engine has.
var functions = map[string]function{
	"IS_DEFINED": {1, func(a []Value) Value { return boolean(a[0].Kind != Undefined) }},
	"IS_NULL":    isKind(Null),
	"IS_BOOL":    isKind(Bool),
	"IS_NUMBER":  isKind(Number),
	"IS_STRING":  isKind(String),
	"IS_ARRAY":   isKind(Array),
	"IS_OBJECT":  isKind(Object),
	"STARTSWITH": ofStrings(bytes.HasPrefix),
	"ENDSWITH":   ofStrings(bytes.HasSuffix),
	"CONTAINS":   ofStrings(bytes.Contains),
	"ARRAY_CONTAINS": {2, func(a []Value) Value {
		if a[0].Kind != Array || a[1].Kind == Undefined {
			return undefined
		}
		for _, v := range elements(a[0].Text) {
			if equal(v, a[1]) {
				return boolean(true)
			}
		}
		return boolean(false)
	}},
	"ARRAY_LENGTH": {1, func(a []Value) Value {
		if a[0].Kind != Array {
			return undefined
		}
		return Value{Kind: Number, Num: float64(len(elements(a[0].Text)))}
	}},
}

// isKind is false, not undefined, of an undefined value.
func isKind(k Kind) function {
	return function{1, func(a []Value) Value { return boolean(a[0].Kind == k) }}
}

func ofStrings(f func(a, b []byte) bool) function {
	return function{2, func(a []Value) Value {
		if a[0].Kind != String || a[1].Kind != String {
			return undefined
		}
		return boolean(f(a[0].Text, a[1].Text))
	}}
}

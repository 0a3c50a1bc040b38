package filter

import (
	"maps"
	"slices"
	"strings"

	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
)

// A shape describes the result of a function, and so its maximum size.
type shape int

const (
	scalar    shape = iota // a number, a boolean or the name of a type
	anElement              // at most as large as the largest argument
	all                    // at most as large as all arguments together
	asText                 // the argument as JSON in a string, with up to six bytes for each character
	joined                 // the elements of the second argument, separated by the first
	mapped                 // the result of the first argument for each element of the second
	ordered                // the first argument, sorted by the results of the second
	chosen                 // one element of the first argument
)

// shapes has the functions that an expression may call: the 26 functions of JMESPath. Functions
// of JMESPath Community are not allowed, because they can make a long string from a short one.
var shapes = map[string]shape{
	"abs": scalar, "avg": scalar, "ceil": scalar, "contains": scalar, "ends_with": scalar, "floor": scalar,
	"join": joined, "keys": all, "length": scalar, "map": mapped, "max": anElement, "max_by": chosen, "merge": all,
	"min": anElement, "min_by": chosen, "not_null": anElement, "reverse": all, "sort": all, "sort_by": ordered,
	"starts_with": scalar, "sum": scalar, "to_array": all, "to_string": asText, "to_number": scalar, "type": scalar,
	"values": all,
}

// functionCaller calls the functions in shapes.
var functionCaller = newFunctionCaller()

func newFunctionCaller() interpreter.FunctionCaller {
	var allowed []functions.FunctionEntry
	for _, f := range functions.GetDefaultFunctions() {
		if _, ok := shapes[f.Name]; !ok {
			continue
		}
		switch f.Name {
		case "sort_by": // the library sorts the argument in place, which would change the metadata
			sort := f.Handler
			f.Handler = func(args []any) (any, error) {
				list, _ := args[0].([]any)
				return sort([]any{slices.Clone(list), args[1]})
			}
		case "contains": // the library panics when it compares lists or objects
			f.Handler = contains
		}
		allowed = append(allowed, f)
	}
	return interpreter.NewFunctionCaller(allowed...)
}

func contains(args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		part, ok := args[1].(string)
		return ok && strings.Contains(text, part), nil
	}
	list, _ := args[0].([]any)
	return slices.ContainsFunc(list, func(e any) bool { return isEqual(e, args[1]) }), nil
}

// isEqual reports whether two JSON values are equal. Unlike reflect.DeepEqual, it allocates no
// memory.
func isEqual(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, isEqual)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, isEqual)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

package query

import (
	"bytes"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

var arrayFunctions = map[string]function{
	"ARRAY_CONCAT":       {2, unlimitedArguments, arrayConcat},
	"ARRAY_CONTAINS":     {2, 3, arrayContains},
	"ARRAY_CONTAINS_ANY": {2, unlimitedArguments, arrayContainsAny},
	"ARRAY_CONTAINS_ALL": {2, unlimitedArguments, arrayContainsAll},
	"ARRAY_LENGTH": {1, 1, func(a []Value) Value {
		if a[0].Kind != Array {
			return undefined
		}
		return numberValue(float64(len(rawElements(a[0].Text))))
	}},
	"ARRAY_SLICE":   {2, 3, arraySlice},
	"ARRAY_AVG":     {1, 1, newElementFunction("AVG")},
	"ARRAY_MAX":     {1, 1, newElementFunction("MAX")},
	"ARRAY_MEDIAN":  {1, 1, arrayMedian},
	"ARRAY_MIN":     {1, 1, newElementFunction("MIN")},
	"ARRAY_SUM":     {1, 1, newElementFunction("SUM")},
	"SETINTERSECT":  {2, 2, setIntersect},
	"SETUNION":      {2, 2, setUnion},
	"SETDIFFERENCE": {2, 2, setDifference},
	"SETEQUAL":      {2, 2, setEqual},
	"OBJECTTOARRAY": {1, 3, objectToArray},
}

func rawElements(raw []byte) [][]byte {
	var items [][]byte
	_ = rawjson.EachElement(raw, func(item []byte) bool { // cannot fail, because raw was checked when it was stored
		items = append(items, item)
		return true
	})
	return items
}

func arrayConcat(a []Value) Value {
	if !areAll(Array, a) {
		return undefined
	}
	var list listBuilder
	for _, from := range a {
		for _, item := range rawElements(from.Text) {
			list.addItem(item)
		}
		if len(list.text) > maxText {
			return undefined
		}
	}
	return list.arrayValue()
}

// arrayContains implements ARRAY_CONTAINS. The optional third argument permits objects in the array to have additional
// properties.
func arrayContains(a []Value) Value {
	if a[0].Kind != Array || a[1].Kind == Undefined || len(a) == 3 && a[2].Kind != Bool {
		return undefined
	}
	part := len(a) == 3 && a[2].Bool && a[1].Kind == Object
	var want []byte
	if !part && a[1].Kind >= Array {
		want = a[1].lookupKey(nil)
	}
	found := false
	var have []byte
	_ = rawjson.EachElement(a[0].Text, func(raw []byte) bool { // cannot fail, because the value was checked when it was stored
		item := ParseValue(raw)
		switch {
		case part:
			found = hasMembersOf(item, a[1])
		case item.Kind != a[1].Kind:
		case item.Kind < Array:
			found = Compare(item, a[1]) == 0
		default:
			have = item.lookupKey(have[:0])
			found = bytes.Equal(have, want)
		}
		return !found
	})
	return boolValue(found)
}

// containsSteps counts one comparison per element if there is a third argument.
func containsSteps(a []Value) int {
	steps := canonicalSteps(a[0]) + canonicalSteps(a[1])
	if len(a) == 3 && a[0].Kind == Array && a[1].Kind == Object {
		const members = 3 // factor for converting each object to a map
		steps += members * (canonicalSteps(a[0]) + len(rawElements(a[0].Text))*canonicalSteps(a[1]))
	}
	return steps
}

// setSteps counts the steps to convert every value to canonical form and look it up.
func setSteps(a []Value) (steps int) {
	for _, v := range a {
		steps += canonicalSteps(v)
	}
	const lookup = 4 // factor for storing each element in a map
	return lookup * steps
}

// hasMembersOf reports whether item equals v, or is an object that contains every property of v.
func hasMembersOf(item, v Value) bool {
	if item.Kind != Object || v.Kind != Object {
		return equalValues(item, v)
	}
	have := parseMembers(item.Text)
	for name, want := range parseMembers(v.Text) {
		if got, ok := have[name]; !ok || !hasMembersOf(got, want) {
			return false
		}
	}
	return true
}

// elementKeys returns a key for each element of an array. Equal values have equal keys.
func elementKeys(array Value) map[string]struct{} {
	keys := map[string]struct{}{}
	var key []byte
	_ = rawjson.EachElement(array.Text, func(raw []byte) bool { // cannot fail, because the value was checked when it was stored
		key = ParseValue(raw).lookupKey(key[:0])
		keys[string(key)] = struct{}{}
		return true
	})
	return keys
}

// arrayContainsAny is an OR of ARRAY_CONTAINS for each argument after the first.
func arrayContainsAny(a []Value) Value { return joinContains(a, false) }

// arrayContainsAll is an AND of ARRAY_CONTAINS for each argument after the first.
func arrayContainsAll(a []Value) Value { return joinContains(a, true) }

func joinContains(a []Value, and bool) Value {
	if a[0].Kind != Array {
		return undefined
	}
	keys := elementKeys(a[0])
	return joinTerms(and, a[1:], func(v Value) Value {
		if v.Kind == Undefined {
			return undefined
		}
		return boolValue(hasKey(keys, v))
	})
}

func hasKey(keys map[string]struct{}, v Value) bool {
	_, ok := keys[string(v.lookupKey(nil))]
	return ok
}

// arraySlice returns a part of an array. A negative start counts from the end.
func arraySlice(a []Value) Value {
	start, ok := a[1].asInt64()
	if a[0].Kind != Array || !ok {
		return undefined
	}
	items := rawElements(a[0].Text)
	size := int64(len(items))
	if start < 0 {
		start += size
	}
	start = min(max(start, 0), size)
	length := size - start
	if len(a) == 3 {
		n, ok := a[2].asInt64()
		if !ok {
			return undefined
		}
		length = min(max(n, 0), length)
	}
	var list listBuilder
	for _, item := range items[start : start+length] {
		list.addItem(item)
	}
	return list.arrayValue()
}

// setIntersect returns the common elements. As on Azure, they are in the order of the second array.
func setIntersect(a []Value) Value {
	if !areAll(Array, a) {
		return undefined
	}
	other := newSeenResults(true)
	for _, item := range rawElements(a[0].Text) {
		other.addIfNew(item)
	}
	var list listBuilder
	given := newSeenResults(true)
	for _, item := range rawElements(a[1].Text) {
		if !other.addIfNew(item) && given.addIfNew(item) {
			list.addItem(item)
		}
	}
	return list.arrayValue()
}

// setDifference returns the elements of the first array that are not in the second array.
func setDifference(a []Value) Value {
	if !areAll(Array, a) {
		return undefined
	}
	given := elementKeys(a[1])
	var list listBuilder
	for _, item := range rawElements(a[0].Text) {
		if key := string(ParseValue(item).lookupKey(nil)); !hasKey(given, ParseValue(item)) {
			given[key] = struct{}{}
			list.addItem(item)
		}
	}
	return list.arrayValue()
}

func setEqual(a []Value) Value {
	if !areAll(Array, a) {
		return undefined
	}
	return boolValue(maps.Equal(elementKeys(a[0]), elementKeys(a[1])))
}

// newElementFunction makes a function that aggregates the elements of an array.
func newElementFunction(aggregate string) func(a []Value) Value {
	return func(a []Value) Value {
		if a[0].Kind != Array {
			return undefined
		}
		var sum accumulator
		for _, v := range parseElements(a[0].Text) {
			sum.addValue(aggregate, v)
		}
		return sum.finalValue(aggregate)
	}
}

func arrayMedian(a []Value) Value {
	if a[0].Kind != Array {
		return undefined
	}
	items := parseElements(a[0].Text)
	numbers := make([]float64, len(items))
	for i, v := range items {
		numbers[i] = v.Num
	}
	if len(items) == 0 || !areAll(Number, items) {
		return undefined
	}
	slices.Sort(numbers)
	return numberValue((numbers[(len(numbers)-1)/2] + numbers[len(numbers)/2]) / 2)
}

func setUnion(a []Value) Value {
	if !areAll(Array, a) {
		return undefined
	}
	var list listBuilder
	given := newSeenResults(true)
	for _, from := range a {
		for _, item := range rawElements(from.Text) {
			if given.addIfNew(item) {
				list.addItem(item)
			}
		}
	}
	return list.arrayValue()
}

// objectToArray returns an object with name and value for each property. The default names of the two are k and v.
func objectToArray(a []Value) Value {
	if a[0].Kind != Object || !areAll(String, a[1:]) {
		return undefined
	}
	key, value := textValue("k"), textValue("v")
	if len(a) > 1 {
		key = a[1]
	}
	if len(a) > 2 {
		value = a[2]
	}
	var list listBuilder
	_ = rawjson.EachMember(a[0].Text, func(name, v []byte) bool { // cannot fail, because the value was checked when it was stored
		if len(list.text) > maxText {
			return false
		}
		pair := append(key.Append([]byte{'{'}), ':')
		pair = append(append(pair, name...), ',')
		pair = append(value.Append(pair), ':')
		list.addItem(append(append(pair, v...), '}'))
		return true
	})
	if len(list.text) > maxText {
		return undefined
	}
	return list.arrayValue()
}

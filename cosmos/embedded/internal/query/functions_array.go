package query

import (
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

var arrayFunctions = map[string]function{
	"ARRAY_CONCAT":       {2, anyNumber, arrayConcat},
	"ARRAY_CONTAINS":     {2, 3, arrayContains},
	"ARRAY_CONTAINS_ANY": {2, anyNumber, arrayContainsAny},
	"ARRAY_CONTAINS_ALL": {2, anyNumber, arrayContainsAll},
	"ARRAY_LENGTH": {1, 1, func(a []Value) Value {
		if a[0].Kind != Array {
			return undefined
		}
		return number(float64(len(rawElements(a[0].Text))))
	}},
	"ARRAY_SLICE":   {2, 3, arraySlice},
	"SETINTERSECT":  {2, 2, setIntersect},
	"SETUNION":      {2, 2, setUnion},
	"OBJECTTOARRAY": {1, 3, objectToArray},
}

func rawElements(raw []byte) [][]byte {
	var items [][]byte
	_ = rawjson.EachElement(raw, func(item []byte) bool { // raw is an array: it was checked when stored
		items = append(items, item)
		return true
	})
	return items
}

func arrayConcat(a []Value) Value {
	if !are(Array, a) {
		return undefined
	}
	var list listBuilder
	for _, from := range a {
		for _, item := range rawElements(from.Text) {
			list.add(item)
		}
	}
	if len(list.text) > maxText {
		return undefined
	}
	return list.value()
}

// arrayContains takes, as third argument, whether an object in the array may
// have more properties than the one looked for.
func arrayContains(a []Value) Value {
	if a[0].Kind != Array || a[1].Kind == Undefined || len(a) == 3 && a[2].Kind != Bool {
		return undefined
	}
	same := equal
	if len(a) == 3 && a[2].Bool {
		same = includes
	}
	return boolean(holds(elements(a[0].Text), a[1], same))
}

func holds(items []Value, v Value, same func(item, v Value) bool) bool {
	return slices.ContainsFunc(items, func(item Value) bool { return same(item, v) })
}

// includes reports whether v is an object of which item has every property,
// or is equal to item.
func includes(item, v Value) bool {
	if item.Kind != Object || v.Kind != Object {
		return equal(item, v)
	}
	have := members(item.Text)
	for name, want := range members(v.Text) {
		if got, ok := have[name]; !ok || !includes(got, want) {
			return false
		}
	}
	return true
}

func arrayContainsAny(a []Value) Value {
	if a[0].Kind != Array {
		return undefined
	}
	items := elements(a[0].Text)
	return boolean(slices.ContainsFunc(a[1:], func(v Value) bool { return v.Kind != Undefined && holds(items, v, equal) }))
}

func arrayContainsAll(a []Value) Value {
	if a[0].Kind != Array {
		return undefined
	}
	items := elements(a[0].Text)
	return boolean(!slices.ContainsFunc(a[1:], func(v Value) bool { return v.Kind == Undefined || !holds(items, v, equal) }))
}

// arraySlice counts a negative start from the end.
func arraySlice(a []Value) Value {
	start, ok := a[1].whole()
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
		n, ok := a[2].whole()
		if !ok {
			return undefined
		}
		length = min(max(n, 0), length)
	}
	var list listBuilder
	for _, item := range items[start : start+length] {
		list.add(item)
	}
	return list.value()
}

func setIntersect(a []Value) Value {
	if !are(Array, a) {
		return undefined
	}
	other := newSeen(true)
	for _, item := range rawElements(a[1].Text) {
		other.first(item)
	}
	var list listBuilder
	given := newSeen(true)
	for _, item := range rawElements(a[0].Text) {
		if !other.first(item) && given.first(item) {
			list.add(item)
		}
	}
	return list.value()
}

func setUnion(a []Value) Value {
	if !are(Array, a) {
		return undefined
	}
	var list listBuilder
	given := newSeen(true)
	for _, from := range a {
		for _, item := range rawElements(from.Text) {
			if given.first(item) {
				list.add(item)
			}
		}
	}
	return list.value()
}

// objectToArray gives a pair for each property, whose names are k and v
// unless others are given.
func objectToArray(a []Value) Value {
	if a[0].Kind != Object || !are(String, a[1:]) {
		return undefined
	}
	key, value := text("k"), text("v")
	if len(a) > 1 {
		key = a[1]
	}
	if len(a) > 2 {
		value = a[2]
	}
	var list listBuilder
	_ = rawjson.EachMember(a[0].Text, func(name, v []byte) bool { // it was checked when stored
		pair := append(key.Append([]byte{'{'}), ':')
		pair = append(append(pair, name...), ',')
		pair = append(value.Append(pair), ':')
		list.add(append(append(pair, v...), '}'))
		return true
	})
	return list.value()
}

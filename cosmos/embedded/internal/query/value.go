package query

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A Kind is a JSON type or undefined. The constants are in the order in which ORDER BY sorts kinds.
type Kind int

// The kinds of values.
const (
	Undefined Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// A Value is a JSON value. It may share memory with a document.
type Value struct {
	Kind Kind
	Bool bool
	Num  float64
	Text []byte // content of a string, or JSON of an array or object
}

var (
	undefined = Value{}
	null      = Value{Kind: Null}
)

func boolValue(b bool) Value { return Value{Kind: Bool, Bool: b} }

// IsTrue reports whether v is the boolean true.
func (v Value) IsTrue() bool { return v.Kind == Bool && v.Bool }

// ParseValue parses a value from rawjson.Compact. A nil slice is undefined.
func ParseValue(raw []byte) Value {
	if len(raw) == 0 {
		return undefined
	}
	switch raw[0] {
	case '"':
		text, _ := rawjson.Unquote(raw)
		return Value{Kind: String, Text: text}
	case '{':
		return Value{Kind: Object, Text: raw}
	case '[':
		return Value{Kind: Array, Text: raw}
	case 't':
		return boolValue(true)
	case 'f':
		return boolValue(false)
	case 'n':
		return null
	}
	if len(raw) <= 15 {
		if n, ok := parseDigits(raw); ok {
			return Value{Kind: Number, Num: float64(n)}
		}
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return undefined
	}
	return Value{Kind: Number, Num: f}
}

// parseDigits parses a number of few digits, without sign or fraction, which a float64 represents exactly. Most numbers
// are like this.
func parseDigits(raw []byte) (n int64, ok bool) {
	for _, b := range raw {
		if b < '0' || b > '9' {
			return 0, false
		}
		n = 10*n + int64(b-'0')
	}
	return n, true
}

// isFinite reports whether JSON can represent the number v. It is false only for the constants NaN
// and Infinity.
func (v Value) isFinite() bool { return !math.IsNaN(v.Num) && !math.IsInf(v.Num, 0) }

// Append appends v as JSON. For undefined, NaN and Infinity it appends nothing.
func (v Value) Append(dst []byte) []byte {
	switch v.Kind {
	case Null:
		return append(dst, "null"...)
	case Bool:
		return strconv.AppendBool(dst, v.Bool)
	case Number:
		if !v.isFinite() {
			return dst
		}
		return rawjson.AppendNumber(dst, v.Num)
	case String:
		return rawjson.AppendQuoted(dst, string(v.Text))
	case Array, Object:
		return append(dst, v.Text...)
	default:
		return dst
	}
}

// Clone returns a copy that shares no memory with the document.
func (v Value) Clone() Value {
	v.Text = bytes.Clone(v.Text)
	return v
}

// Compare compares two values as ORDER BY does. All arrays are equal, as are all objects.
func Compare(a, b Value) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	switch a.Kind {
	case Bool:
		return cmp.Compare(boolToInt(a.Bool), boolToInt(b.Bool))
	case Number:
		return cmp.Compare(a.Num, b.Num)
	case String:
		return bytes.Compare(a.Text, b.Text)
	default:
		return 0
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// equalValues compares two values that are not undefined. The order of an object's properties does not matter.
func equalValues(a, b Value) bool {
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Array:
		return equalArrays(a.Text, b.Text)
	case Object:
		return equalObjects(a.Text, b.Text)
	default:
		return Compare(a, b) == 0
	}
}

func parseElements(raw []byte) []Value {
	var values []Value
	_ = rawjson.EachElement(raw, func(v []byte) bool { // cannot fail, because raw was checked when it was stored
		values = append(values, ParseValue(v))
		return true
	})
	return values
}

func equalArrays(a, b []byte) bool {
	x, y := parseElements(a), parseElements(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !equalValues(x[i], y[i]) {
			return false
		}
	}
	return true
}

// parseMembers returns the properties of an object. If a name occurs twice, it uses the first.
func parseMembers(raw []byte) map[string]Value {
	values := map[string]Value{}
	_ = rawjson.EachMember(raw, func(name, v []byte) bool { // cannot fail, because raw was checked when it was stored
		text, _ := rawjson.Unquote(name)
		if _, have := values[string(text)]; !have {
			values[string(text)] = ParseValue(v)
		}
		return true
	})
	return values
}

func equalObjects(a, b []byte) bool {
	x, y := parseMembers(a), parseMembers(b)
	if len(x) != len(y) {
		return false
	}
	for name, v := range x {
		if w, ok := y[name]; !ok || !equalValues(v, w) {
			return false
		}
	}
	return true
}

// asInt64 returns v as an int64. It returns false unless v is a whole number that fits.
func (v Value) asInt64() (int64, bool) {
	if v.Kind != Number || v.Num != math.Trunc(v.Num) || math.Abs(v.Num) >= 1<<63 {
		return 0, false
	}
	return int64(v.Num), true
}

// appendCanonical appends a text that is equal exactly for equal values.
func (v Value) appendCanonical(dst []byte) []byte {
	switch v.Kind {
	case Array:
		dst = append(dst, '[')
		for _, item := range parseElements(v.Text) {
			dst = append(item.appendCanonical(dst), ',')
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		values := parseMembers(v.Text)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			dst = append(rawjson.AppendQuoted(dst, name), ':')
			dst = append(values[name].appendCanonical(dst), ',')
		}
		return append(dst, '}')
	default:
		return v.Append(dst)
	}
}

package query

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Positions and lengths in strings count characters.
var stringFunctions = map[string]function{
	"CONCAT":       {2, unlimitedArguments, concatText},
	"CONTAINS":     newStringPairFunction(bytes.Contains),
	"STARTSWITH":   newStringPairFunction(bytes.HasPrefix),
	"ENDSWITH":     newStringPairFunction(bytes.HasSuffix),
	"STRINGEQUALS": newStringPairFunction(bytes.Equal),
	"LENGTH": newStringFunction(func(s []byte) Value {
		return numberValue(float64(utf8.RuneCount(s)))
	}),
	"LOWER": newStringFunction(func(s []byte) Value { return Value{Kind: String, Text: bytes.ToLower(s)} }),
	"UPPER": newStringFunction(func(s []byte) Value { return Value{Kind: String, Text: bytes.ToUpper(s)} }),
	"TRIM":  trimText(bytes.TrimFunc),
	"LTRIM": trimText(bytes.TrimLeftFunc),
	"RTRIM": trimText(bytes.TrimRightFunc),
	"REVERSE": newStringFunction(func(s []byte) Value {
		runes := []rune(string(s))
		slices.Reverse(runes)
		return textValue(string(runes))
	}),
	"LEFT": {2, 2, func(a []Value) Value {
		return sliceText(a[0], Value{Kind: Number}, a[1])
	}},
	"RIGHT": {2, 2, func(a []Value) Value {
		if a[0].Kind != String || a[1].Kind != Number {
			return undefined
		}
		length := float64(utf8.RuneCount(a[0].Text))
		return sliceText(a[0], Value{Kind: Number, Num: max(0, length-max(0, a[1].Num))}, a[1])
	}},
	"SUBSTRING":   {3, 3, func(a []Value) Value { return sliceText(a[0], a[1], a[2]) }},
	"INDEX_OF":    {2, 3, indexOf},
	"LASTINDEXOF": {2, 3, lastIndexOf},
	"REPLACE":     {3, 3, replaceText},

	"CONTAINS_ALL_CI": containsEach(true, bytes.ToLower),
	"CONTAINS_ALL_CS": containsEach(true, bytes.Clone),
	"CONTAINS_ANY_CI": containsEach(false, bytes.ToLower),
	"CONTAINS_ANY_CS": containsEach(false, bytes.Clone),

	"REPLICATE":   {2, 2, replicateText},
	"STRINGJOIN":  {2, 2, stringJoin},
	"STRINGSPLIT": {2, 2, stringSplit},
}

func newStringFunction(f func(s []byte) Value) function {
	return function{1, 1, func(a []Value) Value {
		if a[0].Kind != String {
			return undefined
		}
		return f(a[0].Text)
	}}
}

// newStringPairFunction returns a function of two strings. Its optional third argument tells whether to ignore case.
func newStringPairFunction(f func(a, b []byte) bool) function {
	return function{2, 3, func(a []Value) Value {
		if !areAll(String, a[:2]) || len(a) == 3 && a[2].Kind != Bool {
			return undefined
		}
		if len(a) == 3 && a[2].Bool {
			return boolValue(f(bytes.ToLower(a[0].Text), bytes.ToLower(a[1].Text)))
		}
		return boolValue(f(a[0].Text, a[1].Text))
	}}
}

// sliceText returns up to length characters of s, starting at the index from.
func sliceText(s, from, length Value) Value {
	start, ok := from.asInt64()
	n, whole := length.asInt64()
	if s.Kind != String || !ok || !whole {
		return undefined
	}
	runes := []rune(string(s.Text))
	start = min(max(start, 0), int64(len(runes)))
	n = min(max(n, 0), int64(len(runes))-start)
	return textValue(string(runes[start : start+n]))
}

// trimText returns a function that trims white space, or the characters in its second argument.
func trimText(trim func(s []byte, f func(rune) bool) []byte) function {
	return function{1, 2, func(a []Value) Value {
		if !areAll(String, a) {
			return undefined
		}
		isTrimmed := unicode.IsSpace
		if len(a) == 2 {
			isTrimmed = func(r rune) bool { return bytes.ContainsRune(a[1].Text, r) }
		}
		return Value{Kind: String, Text: trim(a[0].Text, isTrimmed)}
	}}
}

// trimSteps counts the search for each character of a string among the characters to remove.
func trimSteps(a []Value) int {
	if len(a) < 2 {
		return 0
	}
	return len(a[0].Text) * (1 + len(a[1].Text)/readPerStep)
}

func indexOf(a []Value) Value {
	if !areAll(String, a[:2]) {
		return undefined
	}
	runes, start := []rune(string(a[0].Text)), int64(0)
	if len(a) == 3 {
		var ok bool
		if start, ok = a[2].asInt64(); !ok || start < 0 {
			return undefined
		}
		start = min(start, int64(len(runes)))
	}
	rest := string(runes[start:])
	i := strings.Index(rest, string(a[1].Text))
	if i < 0 {
		return numberValue(-1)
	}
	return numberValue(float64(int(start) + utf8.RuneCountInString(rest[:i])))
}

// lastIndexOf searches backward. The optional third argument is where the search starts.
func lastIndexOf(a []Value) Value {
	if !areAll(String, a[:2]) {
		return undefined
	}
	runes := []rune(string(a[0].Text))
	if len(a) == 3 {
		last, ok := a[2].asInt64()
		if !ok || last < 0 {
			return undefined
		}
		runes = runes[:min(last, int64(len(runes)-1))+1]
	}
	text := string(runes)
	i := strings.LastIndex(text, string(a[1].Text))
	if i < 0 {
		return numberValue(-1)
	}
	return numberValue(float64(utf8.RuneCountInString(text[:i])))
}

// containsEach returns a function that tests CONTAINS for each argument after the first, and joins the results by AND
// or OR. fold converts the texts before the comparison.
func containsEach(and bool, fold func(s []byte) []byte) function {
	return function{2, unlimitedArguments, func(a []Value) Value {
		text := fold(a[0].Text)
		return joinTerms(and, a[1:], func(v Value) Value {
			if a[0].Kind != String || v.Kind != String {
				return undefined
			}
			return boolValue(bytes.Contains(text, fold(v.Text)))
		})
	}}
}

func replaceText(a []Value) Value {
	if !areAll(String, a) {
		return undefined
	}
	old, latest := a[1].Text, a[2].Text
	if len(old) == 0 {
		return a[0]
	}
	if size := len(a[0].Text) + bytes.Count(a[0].Text, old)*len(latest); size > maxText {
		return undefined
	}
	return Value{Kind: String, Text: bytes.ReplaceAll(a[0].Text, old, latest)}
}

// maxReplicated is the documented maximum length of the result of REPLICATE.
const maxReplicated = 10_000

func replicateText(a []Value) Value {
	n, ok := a[1].asInt64()
	if a[0].Kind != String || !ok || n < 0 {
		return undefined
	}
	if length := int64(utf8.RuneCount(a[0].Text)); length > 0 && n > maxReplicated/length {
		return undefined
	} else if length == 0 {
		return a[0]
	}
	return Value{Kind: String, Text: bytes.Repeat(a[0].Text, int(n))}
}

func stringJoin(a []Value) Value {
	if a[0].Kind != Array || a[1].Kind != String {
		return undefined
	}
	var parts []Value
	for i, item := range parseElements(a[0].Text) {
		if i > 0 {
			parts = append(parts, a[1])
		}
		parts = append(parts, item)
	}
	return concatText(parts)
}

func stringSplit(a []Value) Value {
	if !areAll(String, a) {
		return undefined
	}
	var list listBuilder
	if len(a[1].Text) == 0 {
		list.addItem(a[0].Append(nil))
		return list.arrayValue()
	}
	for piece := range bytes.SplitSeq(a[0].Text, a[1].Text) {
		list.addItem(Value{Kind: String, Text: piece}.Append(nil))
	}
	return list.arrayValue()
}

package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ErrEnds reports text that ends within a value, or a value of an unexpected kind.
var ErrEnds = errors.New("invalid JSON: the text ends inside a value, or is of another kind")

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// Skip returns the index after the value at b[i]. It returns -1 if there is no value, or if the text ends within the
// value.
func Skip(b []byte, i int) int {
	if i < 0 || i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	case '}', ']', ',', ':', ' ', '\n', '\t', '\r':
		return -1 // there is no value; callers rely on Skip to advance by at least one byte
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ':', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := skipString(b, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// skipString searches for the closing quote, and then backward for an escape. Base64 contains neither, so a long string
// needs a single IndexByte. The first 16 bytes are scanned one by one, because most strings are short.
func skipString(b []byte, i int) int {
	start := i + 1
	for j := start; j < len(b) && j < start+16 && b[j] != '\\'; j++ {
		if b[j] == '"' {
			return j + 1
		}
	}
	for from := start; ; {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		escapes := 0
		for j := end - 1; j >= start && b[j] == '\\'; j-- {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
}

// EachMember calls visit with the quoted name and the value of each property of object b, until visit returns false.
func EachMember(b []byte, visit func(name, value []byte) bool) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return ErrEnds
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] != '}'; {
		if b[i] != '"' {
			return ErrEnds
		}
		nameEnd := skipString(b, i)
		if nameEnd < 0 {
			return ErrEnds
		}
		colon := skipSpace(b, nameEnd)
		if colon >= len(b) || b[colon] != ':' {
			return ErrEnds
		}
		value := skipSpace(b, colon+1)
		end := Skip(b, value)
		if end < 0 || !visit(b[i:nameEnd], b[value:end]) {
			return errorOfEnd(end)
		}
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i < len(b) && b[i] != '}' {
			return ErrEnds
		}
	}
	if i >= len(b) {
		return ErrEnds
	}
	return nil
}

// EachElement calls visit with each element of array b, until visit returns false.
func EachElement(b []byte, visit func(value []byte) bool) error {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return ErrEnds
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] != ']'; {
		end := Skip(b, i)
		if end < 0 || !visit(b[i:end]) {
			return errorOfEnd(end)
		}
		if i = skipSpace(b, end); i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		} else if i < len(b) && b[i] != ']' {
			return ErrEnds
		}
	}
	if i >= len(b) {
		return ErrEnds
	}
	return nil
}

func errorOfEnd(end int) error {
	if end < 0 {
		return ErrEnds
	}
	return nil
}

// Unquote returns the text of a JSON string. Without escapes, the text is a part of b. ok is false if b is not a
// string.
func Unquote(b []byte) (text []byte, ok bool) {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return nil, false
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return b[1 : len(b)-1], true
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// IsName reports whether the quoted name equals want. It unquotes a name only if the name is longer, because escapes
// are longer than their characters.
func IsName(name []byte, want string) bool {
	if len(name) <= len(want)+2 {
		return len(name) == len(want)+2 && string(name[1:len(name)-1]) == want
	}
	if bytes.IndexByte(name, '\\') < 0 {
		return false
	}
	text, ok := Unquote(name)
	return ok && string(text) == want
}

// AppendQuoted appends s as a JSON string.
func AppendQuoted(dst []byte, s string) []byte {
	clean := utf8.ValidString(s)
	for i := 0; clean && i < len(s); i++ {
		clean = s[i] >= 0x20 && s[i] != '"' && s[i] != '\\'
	}
	if clean {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(dst, `""`...) // cannot happen, because every Go string can be encoded
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// Depth returns the nesting depth of arrays and objects in b. A scalar has depth 0.
func Depth(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := skipString(b, i)
			if end < 0 {
				return deepest
			}
			i = end - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

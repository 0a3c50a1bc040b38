package eventjson

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Default limits for the structure of a payload. Parsers disagree about larger payloads: .NET
// rejects more than 64 levels, and Jackson rejects numbers of more than 1,000 characters.
const (
	DefaultPayloadDepth  = 64
	DefaultPayloadNumber = 400
)

// A ShapeChecker detects valid JSON that common parsers read differently: nesting that is too deep,
// numbers that are too long, repeated names in an object, and halves of surrogate pairs. It can
// check several texts, and reuses its memory.
type ShapeChecker struct {
	maxDepth  int
	maxNumber int

	levels  []level
	names   [][]byte // names in all open objects, starting with the outermost object
	decoded []byte   // buffer for unescaped names
}

// NewShapeChecker returns a checker that applies the limits of payloads.
func NewShapeChecker(limits Limits) ShapeChecker {
	return ShapeChecker{
		maxDepth:  cmp.Or(limits.PayloadDepth, DefaultPayloadDepth),
		maxNumber: cmp.Or(limits.PayloadNumber, DefaultPayloadNumber),
	}
}

// A level is an open object or array.
type level struct {
	object bool
	index  int // index of the current element, if the level is an array
	first  int // index in ShapeChecker.names of the object's first name
}

// A ShapeFault is the first fault of a JSON text.
type ShapeFault struct {
	Pointer string // JSON pointer to the faulty value
	Reason  string // one of the reasons below
	Detail  string
}

// The reasons of a ShapeFault.
const (
	TooDeep        = "too-deep"
	NumberTooLong  = "number-too-long"
	DuplicateField = "duplicate-field"
	LoneSurrogate  = "lone-surrogate"
)

// Check checks text, which must be one valid JSON value. It returns nil if it finds no fault.
func (c *ShapeChecker) Check(text []byte) *ShapeFault {
	c.levels, c.names, c.decoded = c.levels[:0], c.names[:0], c.decoded[:0]
	isName := false // whether the next string is the name of a member
	for i := 0; i < len(text); i++ {
		switch b := text[i]; b {
		case '{', '[':
			if len(c.levels) == c.maxDepth {
				return c.newFault(TooDeep, fmt.Sprintf("want at most %d levels of nesting", c.maxDepth))
			}
			c.levels = append(c.levels, level{object: b == '{', first: len(c.names)})
			isName = b == '{'
		case '}':
			if f := c.closeObject(); f != nil {
				return f
			}
			isName = false
		case ']':
			c.popLevel()
		case ',':
			top := &c.levels[len(c.levels)-1]
			top.index++
			isName = top.object
		case ':':
			isName = false
		case '"':
			end, escaped, lone := scanString(text, i)
			if lone >= 0 {
				if isName { // the pointer leads to the object, because the name of this member is invalid
					c.popLevel()
				}
				return c.newFault(LoneSurrogate, `want both halves of a surrogate pair, got only `+string(text[lone:lone+6]))
			}
			if isName {
				c.addName(text[i+1:end], escaped)
			}
			i = end
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := numberEnd(text, i)
			if n := end - i; n > c.maxNumber {
				return c.newFault(NumberTooLong, fmt.Sprintf("want numbers of at most %d characters, got %d", c.maxNumber, n))
			}
			i = end - 1
		}
	}
	return nil
}

// scanString returns the index of the quote that closes the string at start, and whether the string
// contains escapes. lone is the index of an escape for half of a surrogate pair, or -1 if there is
// none.
func scanString(text []byte, start int) (end int, escaped bool, lone int) {
	for i := start + 1; ; i++ {
		switch text[i] {
		case '"':
			return i, escaped, -1
		case '\\':
			escaped = true
			if text[i+1] != 'u' {
				i++
				continue
			}
			switch {
			case !isSurrogate(text[i:]):
				i += 5
			case isHigh(text[i:]) && isSurrogate(text[i+6:]) && !isHigh(text[i+6:]):
				i += 11
			default:
				return 0, escaped, i
			}
		}
	}
}

// isSurrogate reports whether text starts with an escape from \ud800 to \udfff.
func isSurrogate(text []byte) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && text[2]|0x20 == 'd' && text[3] >= '8'
}

// isHigh reports whether a surrogate is the first half of a pair, from \ud800 to \udbff.
func isHigh(surrogate []byte) bool {
	c := surrogate[3] | 0x20
	return surrogate[3] <= '9' || c == 'a' || c == 'b'
}

// numberEnd returns the index after the last character of the number at start.
func numberEnd(text []byte, start int) int {
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-', '+', '.', 'e', 'E':
		default:
			return i
		}
	}
	return len(text)
}

// addName adds a name to the innermost object.
func (c *ShapeChecker) addName(name []byte, escaped bool) {
	if escaped {
		start := len(c.decoded)
		c.decoded = appendUnescaped(c.decoded, name)
		name = c.decoded[start:]
	}
	c.names = append(c.names, name)
}

// appendUnescaped appends the unescaped content of a JSON string.
func appendUnescaped(to, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			to = append(to, text[i])
			continue
		}
		i++
		switch text[i] {
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 't':
			to = append(to, '\t')
		case 'u':
			r := hexRune(text[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hexRune(text[i+3:]))
				i += 6
			}
			to = utf8.AppendRune(to, r)
		default:
			to = append(to, text[i])
		}
	}
	return to
}

// hexRune decodes the first four characters of text, which are hexadecimal digits.
func hexRune(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 32) // ParseUint cannot fail, because the text is valid JSON
	return rune(n)                                      //nolint:gosec // at most 0xffff
}

// closeObject closes the innermost object and reports a repeated name in this object. It sorts the
// names, because comparing all pairs would take quadratic time.
func (c *ShapeChecker) closeObject() *ShapeFault {
	first := c.levels[len(c.levels)-1].first
	if repeated, ok := repeatedName(c.names[first:]); ok {
		c.names = append(c.names[:first], repeated)
		return c.newFault(DuplicateField, "want each name once in an object")
	}
	c.popLevel()
	return nil
}

// popLevel removes the innermost level.
func (c *ShapeChecker) popLevel() {
	last := len(c.levels) - 1
	c.names = c.names[:c.levels[last].first]
	c.levels = c.levels[:last]
}

// repeatedName returns a name that occurs more than once. It may change the order of the names.
func repeatedName(names [][]byte) ([]byte, bool) {
	const maxPairwise = 12
	if len(names) > maxPairwise {
		slices.SortFunc(names, bytes.Compare)
		for i := 1; i < len(names); i++ {
			if bytes.Equal(names[i-1], names[i]) {
				return names[i], true
			}
		}
		return nil, false
	}
	for i := range names {
		for j := range i {
			if bytes.Equal(names[i], names[j]) {
				return names[i], true
			}
		}
	}
	return nil, false
}

// newFault returns a fault at the current value. Its pointer leads to that value, or to the
// innermost enclosing value whose pointer is short enough.
func (c *ShapeChecker) newFault(reason, detail string) *ShapeFault {
	const maxPointer = 200
	var pointer strings.Builder
	for i, l := range c.levels {
		var token string
		if l.object {
			last := len(c.names) // the names of this level end where the names of the next level start
			if i+1 < len(c.levels) {
				last = c.levels[i+1].first
			}
			token = EscapePointer(string(c.names[last-1]))
		} else {
			token = strconv.Itoa(l.index)
		}
		if pointer.Len()+1+len(token) > maxPointer {
			break
		}
		pointer.WriteString("/" + token)
	}
	return &ShapeFault{pointer.String(), reason, detail}
}

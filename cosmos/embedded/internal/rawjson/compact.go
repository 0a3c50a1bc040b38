package rawjson

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// Compact appends src, exactly one JSON value, to dst without insignificant white space. Like Cosmos DB, it rounds
// numbers to the nearest double, so that a test detects a 64-bit integer that Azure would round.
func Compact(dst, src []byte) ([]byte, error) {
	c := compactor{src: src, dst: dst}
	c.skipSpace()
	if err := c.compactValue(0); err != nil {
		return dst, err
	}
	c.skipSpace()
	if c.pos != len(src) {
		return dst, c.newError("text after the value")
	}
	return c.dst, nil
}

type compactor struct {
	src []byte
	pos int
	dst []byte
}

func (c *compactor) newError(reason string) error { return &SyntaxError{c.pos, reason} }

func (c *compactor) skipSpace() { c.pos = skipSpace(c.src, c.pos) }

// peekByte returns the byte at the current position, or 0 at the end. Because no value starts with 0, callers need no
// check for the end.
func (c *compactor) peekByte() byte {
	if c.pos < len(c.src) {
		return c.src[c.pos]
	}
	return 0
}

func (c *compactor) compactValue(depth int) error {
	switch b := c.peekByte(); {
	case b == '{':
		return c.compactObject(depth + 1)
	case b == '[':
		return c.compactArray(depth + 1)
	case b == '"':
		return c.compactString()
	case b == '-' || '0' <= b && b <= '9':
		return c.compactNumber()
	case b == 't':
		return c.compactWord("true")
	case b == 'f':
		return c.compactWord("false")
	case b == 'n':
		return c.compactWord("null")
	}
	if c.pos >= len(c.src) {
		return c.newError("the text ends where a value should start")
	}
	return c.newError("no value starts with this character")
}

func (c *compactor) compactWord(w string) error {
	if end := c.pos + len(w); end <= len(c.src) && string(c.src[c.pos:end]) == w {
		c.dst = append(c.dst, w...)
		c.pos = end
		return nil
	}
	return c.newError("want " + w)
}

func (c *compactor) compactObject(depth int) error {
	if depth > MaxDepth {
		return c.newError("nested deeper than 128 levels")
	}
	c.copyByte()
	c.skipSpace()
	if c.peekByte() == '}' {
		c.copyByte()
		return nil
	}
	for {
		if c.peekByte() != '"' {
			return c.newError("want a property name")
		}
		if err := c.compactString(); err != nil {
			return err
		}
		c.skipSpace()
		if c.peekByte() != ':' {
			return c.newError("want ':' after a property name")
		}
		c.copyByte()
		c.skipSpace()
		if err := c.compactValue(depth); err != nil {
			return err
		}
		c.skipSpace()
		switch c.peekByte() {
		case ',':
			c.copyByte()
			c.skipSpace()
		case '}':
			c.copyByte()
			return nil
		default:
			return c.newError("want ',' or '}'")
		}
	}
}

func (c *compactor) compactArray(depth int) error {
	if depth > MaxDepth {
		return c.newError("nested deeper than 128 levels")
	}
	c.copyByte()
	c.skipSpace()
	if c.peekByte() == ']' {
		c.copyByte()
		return nil
	}
	for {
		if err := c.compactValue(depth); err != nil {
			return err
		}
		c.skipSpace()
		switch c.peekByte() {
		case ',':
			c.copyByte()
			c.skipSpace()
		case ']':
			c.copyByte()
			return nil
		default:
			return c.newError("want ',' or ']'")
		}
	}
}

// copyByte copies one structural byte.
func (c *compactor) copyByte() {
	c.dst = append(c.dst, c.src[c.pos])
	c.pos++
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// isPlainASCII reports whether all eight bytes are ASCII without quotes, backslashes and control characters. It may
// wrongly return false, but never wrongly true.
func isPlainASCII(w uint64) bool {
	quote, escape := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*0x20)&^w|(quote-ones)&^quote|(escape-ones)&^escape|w)&highs == 0
}

func (c *compactor) compactString() error {
	src, start, i := c.src, c.pos, c.pos+1
	ascii := true
	for {
		for i+8 <= len(src) && isPlainASCII(binary.LittleEndian.Uint64(src[i:])) {
			i += 8
		}
		if i >= len(src) {
			c.pos = i
			return c.newError("the text ends inside a string")
		}
		switch b := src[i]; {
		case b == '"':
			i++
			if !ascii && !utf8.Valid(src[start:i]) {
				return c.newError("a string is not UTF-8")
			}
			c.dst = append(c.dst, src[start:i]...)
			c.pos = i
			return nil
		case b == '\\':
			n := escapeLen(src[i:])
			if n == 0 {
				c.pos = i
				return c.newError("unknown escape in a string")
			}
			i += n
		case b < 0x20:
			c.pos = i
			return c.newError("control character in a string")
		default:
			ascii = ascii && b < utf8.RuneSelf
			i++
		}
	}
}

// escapeLen returns the length of the escape at the start of b, or 0 if none exists.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, h := range b[2:6] {
			if (h < '0' || h > '9') && (h|0x20 < 'a' || h|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (c *compactor) compactNumber() error {
	start := c.pos
	if c.peekByte() == '-' {
		c.pos++
	}
	whole := c.countDigits()
	if whole == 0 {
		return c.newError("want a digit")
	}
	if c.src[c.pos-whole] == '0' && whole > 1 {
		return c.newError("a number starts with 0")
	}
	digits, risky := whole, false
	if c.peekByte() == '.' {
		c.pos++
		n := c.countDigits()
		if n == 0 {
			return c.newError("want a digit after '.'")
		}
		digits += n
	}
	if b := c.peekByte(); b == 'e' || b == 'E' {
		c.pos++
		if b := c.peekByte(); b == '+' || b == '-' {
			c.pos++
		}
		if c.countDigits() == 0 {
			return c.newError("want a digit in the exponent")
		}
		risky = true
	}
	text := c.src[start:c.pos]
	if digits <= 15 && !risky {
		c.dst = append(c.dst, text...)
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return c.newError("a number is too large for a double")
	}
	c.dst = AppendNumber(c.dst, f)
	return nil
}

func (c *compactor) countDigits() int {
	start := c.pos
	for c.pos < len(c.src) && '0' <= c.src[c.pos] && c.src[c.pos] <= '9' {
		c.pos++
	}
	return c.pos - start
}

// AppendNumber appends f as the shortest JSON number that parses as f.
func AppendNumber(dst []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64)
}

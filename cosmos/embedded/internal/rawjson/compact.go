package rawjson

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// Compact appends src, which must hold exactly one JSON value, to dst without
// insignificant white space.
//
// Cosmos DB stores numbers as IEEE doubles. A number with more digits than a
// double can hold is written as the double it becomes, so that nobody learns
// only on the real service that a 64-bit integer does not survive.
func Compact(dst, src []byte) ([]byte, error) {
	c := compactor{src: src, dst: dst}
	c.space()
	if err := c.value(0); err != nil {
		return dst, err
	}
	c.space()
	if c.pos != len(src) {
		return dst, c.fail("text after the value")
	}
	return c.dst, nil
}

type compactor struct {
	src []byte
	pos int
	dst []byte
}

func (c *compactor) fail(reason string) error { return &SyntaxError{c.pos, reason} }

func (c *compactor) space() { c.pos = space(c.src, c.pos) }

// next returns the byte at the position, or 0 at the end: no value starts
// with 0, so the end needs no case of its own.
func (c *compactor) next() byte {
	if c.pos < len(c.src) {
		return c.src[c.pos]
	}
	return 0
}

func (c *compactor) value(depth int) error {
	switch b := c.next(); {
	case b == '{':
		return c.object(depth + 1)
	case b == '[':
		return c.array(depth + 1)
	case b == '"':
		return c.str()
	case b == '-' || '0' <= b && b <= '9':
		return c.number()
	case b == 't':
		return c.word("true")
	case b == 'f':
		return c.word("false")
	case b == 'n':
		return c.word("null")
	}
	if c.pos >= len(c.src) {
		return c.fail("the text ends where a value should start")
	}
	return c.fail("no value starts with this character")
}

func (c *compactor) word(w string) error {
	if end := c.pos + len(w); end <= len(c.src) && string(c.src[c.pos:end]) == w {
		c.dst = append(c.dst, w...)
		c.pos = end
		return nil
	}
	return c.fail("want " + w)
}

func (c *compactor) object(depth int) error {
	if depth > MaxDepth {
		return c.fail("nested deeper than 128 levels")
	}
	c.take()
	c.space()
	if c.next() == '}' {
		c.take()
		return nil
	}
	for {
		if c.next() != '"' {
			return c.fail("want a property name")
		}
		if err := c.str(); err != nil {
			return err
		}
		c.space()
		if c.next() != ':' {
			return c.fail("want ':' after a property name")
		}
		c.take()
		c.space()
		if err := c.value(depth); err != nil {
			return err
		}
		c.space()
		switch c.next() {
		case ',':
			c.take()
			c.space()
		case '}':
			c.take()
			return nil
		default:
			return c.fail("want ',' or '}'")
		}
	}
}

func (c *compactor) array(depth int) error {
	if depth > MaxDepth {
		return c.fail("nested deeper than 128 levels")
	}
	c.take()
	c.space()
	if c.next() == ']' {
		c.take()
		return nil
	}
	for {
		if err := c.value(depth); err != nil {
			return err
		}
		c.space()
		switch c.next() {
		case ',':
			c.take()
			c.space()
		case ']':
			c.take()
			return nil
		default:
			return c.fail("want ',' or ']'")
		}
	}
}

// take copies one byte of structure.
func (c *compactor) take() {
	c.dst = append(c.dst, c.src[c.pos])
	c.pos++
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain reports whether none of the eight bytes ends a string, starts an
// escape, is a control character or is outside ASCII. It may say false of
// plain bytes, never true of others.
func plain(w uint64) bool {
	quote, escape := w^(ones*'"'), w^(ones*'\\')
	return ((w-ones*0x20)&^w|(quote-ones)&^quote|(escape-ones)&^escape|w)&highs == 0
}

func (c *compactor) str() error {
	src, start, i := c.src, c.pos, c.pos+1
	ascii := true
	for {
		for i+8 <= len(src) && plain(binary.LittleEndian.Uint64(src[i:])) {
			i += 8
		}
		if i >= len(src) {
			c.pos = i
			return c.fail("the text ends inside a string")
		}
		switch b := src[i]; {
		case b == '"':
			i++
			if !ascii && !utf8.Valid(src[start:i]) {
				return c.fail("a string is not UTF-8")
			}
			c.dst = append(c.dst, src[start:i]...)
			c.pos = i
			return nil
		case b == '\\':
			n := escapeLen(src[i:])
			if n == 0 {
				c.pos = i
				return c.fail("unknown escape in a string")
			}
			i += n
		case b < 0x20:
			c.pos = i
			return c.fail("control character in a string")
		default:
			ascii = ascii && b < utf8.RuneSelf
			i++
		}
	}
}

// escapeLen returns the length of the escape that b starts with, 0 if none.
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

func (c *compactor) number() error {
	start := c.pos
	if c.next() == '-' {
		c.pos++
	}
	whole := c.digits()
	if whole == 0 {
		return c.fail("want a digit")
	}
	if c.src[c.pos-whole] == '0' && whole > 1 {
		return c.fail("a number starts with 0")
	}
	digits, risky := whole, false
	if c.next() == '.' {
		c.pos++
		n := c.digits()
		if n == 0 {
			return c.fail("want a digit after '.'")
		}
		digits += n
	}
	if b := c.next(); b == 'e' || b == 'E' {
		c.pos++
		if b := c.next(); b == '+' || b == '-' {
			c.pos++
		}
		if c.digits() == 0 {
			return c.fail("want a digit in the exponent")
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
		return c.fail("a number is too large for a double")
	}
	c.dst = AppendNumber(c.dst, f)
	return nil
}

func (c *compactor) digits() int {
	start := c.pos
	for c.pos < len(c.src) && '0' <= c.src[c.pos] && c.src[c.pos] <= '9' {
		c.pos++
	}
	return c.pos - start
}

// AppendNumber appends f as JSON: the shortest text that reads back as f.
func AppendNumber(dst []byte, f float64) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64)
}

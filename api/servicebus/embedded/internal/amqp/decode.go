package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

const (
	// MaxNesting is the maximum nesting of values.
	MaxNesting = 32

	// maxEmpty limits the total number of array elements of size zero that a Decoder reads.
	maxEmpty = 4096
)

var (
	errShort  = errors.New("amqp: the value goes beyond its end")
	errNested = fmt.Errorf("amqp: values are nested more than %d levels deep", MaxNesting)
)

// A Decoder reads consecutive values from a slice. Binary values share the memory of the slice.
type Decoder struct {
	b     []byte
	depth int
	empty *int // number of array elements of size zero that were read so far
}

// NewDecoder returns a Decoder that reads b.
func NewDecoder(b []byte) *Decoder { return &Decoder{b: b, empty: new(int)} }

// Rest returns the unread bytes.
func (d *Decoder) Rest() []byte { return d.b }

// Unmarshal decodes b, which must contain exactly one value.
func Unmarshal(b []byte) (any, error) {
	d := NewDecoder(b)
	v, err := d.Value()
	if err == nil && len(d.b) > 0 {
		err = fmt.Errorf("amqp: %d bytes follow the value", len(d.b))
	}
	return v, err
}

// Value reads the next value.
func (d *Decoder) Value() (any, error) {
	if d.depth == MaxNesting {
		return nil, errNested
	}
	d.depth++
	defer func() { d.depth-- }()
	code, err := d.readByte()
	if err != nil {
		return nil, err
	}
	if code != codeDescribed {
		return d.readBody(code)
	}
	descriptor, err := d.Value()
	if err != nil {
		return nil, err
	}
	value, err := d.Value()
	return Described{descriptor, value}, err
}

func (d *Decoder) readByte() (byte, error) {
	if len(d.b) == 0 {
		return 0, errShort
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c, nil
}

func (d *Decoder) takeBytes(n uint64) ([]byte, error) {
	if n > uint64(len(d.b)) {
		return nil, errShort
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b, nil
}

// takeContents returns the bytes after a constructor. The upper half of code tells whether their number is fixed, or
// precedes them as a size of 1 or 4 bytes.
func (d *Decoder) takeContents(code byte) ([]byte, error) {
	switch code >> 4 {
	case 0x4:
		return nil, nil
	case 0x5:
		return d.takeBytes(1)
	case 0x6:
		return d.takeBytes(2)
	case 0x7:
		return d.takeBytes(4)
	case 0x8:
		return d.takeBytes(8)
	case 0x9:
		return d.takeBytes(16)
	case 0xa, 0xc, 0xe:
		size, err := d.readByte()
		if err != nil {
			return nil, err
		}
		return d.takeBytes(uint64(size))
	case 0xb, 0xd, 0xf:
		size, err := d.takeBytes(4)
		if err != nil {
			return nil, err
		}
		return d.takeBytes(uint64(binary.BigEndian.Uint32(size)))
	}
	return nil, fmt.Errorf("amqp: no type has the constructor 0x%02x", code)
}

// Skip skips the next value and returns its bytes.
func (d *Decoder) Skip() ([]byte, error) {
	start := d.b
	if err := d.skipValue(0); err != nil {
		return nil, err
	}
	n := len(start) - len(d.b)
	return start[:n:n], nil
}

func (d *Decoder) skipValue(depth int) error {
	if depth == MaxNesting {
		return errNested
	}
	code, err := d.readByte()
	if err != nil {
		return err
	}
	if code == codeDescribed {
		if err := d.skipValue(depth + 1); err != nil {
			return err
		}
		return d.skipValue(depth + 1)
	}
	_, err = d.takeContents(code)
	return err
}

// readBody decodes the bytes after a constructor.
func (d *Decoder) readBody(code byte) (any, error) {
	b, err := d.takeContents(code)
	if err != nil {
		return nil, err
	}
	switch code {
	case codeBinary8, codeBinary32:
		return b, nil
	case codeString8, codeString32:
		if !utf8.Valid(b) {
			return nil, errors.New("amqp: a string is not UTF-8")
		}
		return string(b), nil
	case codeSymbol8, codeSymbol32:
		return Symbol(b), nil
	case codeList0:
		return List{}, nil
	case codeList8, codeList32:
		return d.readList(code, b)
	case codeMap8, codeMap32:
		return d.readPairs(code, b)
	case codeArray8, codeArray32:
		return d.readArray(code, b)
	}
	return readScalar(code, b)
}

// readScalar decodes a value of fixed width.
func readScalar(code byte, b []byte) (any, error) {
	switch code {
	case codeNull:
		return nil, nil
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeBool:
		return b[0] != 0, nil
	case codeUint0:
		return uint32(0), nil
	case codeUlong0:
		return uint64(0), nil
	case codeUbyte:
		return b[0], nil
	case codeByte:
		return int8(b[0]), nil //nolint:gosec // the same bits
	case codeSmallUint:
		return uint32(b[0]), nil
	case codeSmallUlong:
		return uint64(b[0]), nil
	case codeSmallInt:
		return int32(int8(b[0])), nil //nolint:gosec // the same bits
	case codeSmallLong:
		return int64(int8(b[0])), nil //nolint:gosec // the same bits
	case codeUshort:
		return binary.BigEndian.Uint16(b), nil
	case codeShort:
		return int16(binary.BigEndian.Uint16(b)), nil //nolint:gosec // the same bits
	case codeUint:
		return binary.BigEndian.Uint32(b), nil
	case codeInt:
		return int32(binary.BigEndian.Uint32(b)), nil //nolint:gosec // the same bits
	case codeFloat:
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case codeChar:
		return Char(binary.BigEndian.Uint32(b)), nil
	case codeDecimal32:
		return Decimal32(b), nil
	case codeUlong:
		return binary.BigEndian.Uint64(b), nil
	case codeLong:
		return int64(binary.BigEndian.Uint64(b)), nil //nolint:gosec // the same bits
	case codeDouble:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case codeTimestamp:
		return Timestamp(binary.BigEndian.Uint64(b)), nil //nolint:gosec // the same bits
	case codeDecimal64:
		return Decimal64(b), nil
	case codeDecimal128:
		return Decimal128(b), nil
	case codeUUID:
		return UUID(b), nil
	}
	return nil, fmt.Errorf("amqp: no type has the constructor 0x%02x", code)
}

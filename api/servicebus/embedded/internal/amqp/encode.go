package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Append appends the encoding of v to b. It panics if AMQP cannot encode the type of v.
func Append(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, codeNull)
	case bool:
		if v {
			return append(b, codeTrue)
		}
		return append(b, codeFalse)
	case Described:
		b = Append(append(b, codeDescribed), v.Descriptor)
		return Append(b, v.Value)
	case List:
		return appendList(b, v)
	case Map:
		return appendMap(b, v)
	case uint32:
		if v <= math.MaxUint8 {
			if v == 0 {
				return append(b, codeUint0)
			}
			return append(b, codeSmallUint, byte(v))
		}
	case uint64:
		return appendUlong(b, v)
	case int32:
		if v == int32(int8(v)) { //nolint:gosec // the conversion is the test
			return append(b, codeSmallInt, byte(v)) //nolint:gosec // the same bits
		}
	case int64:
		if v == int64(int8(v)) { //nolint:gosec // the conversion is the test
			return append(b, codeSmallLong, byte(v)) //nolint:gosec // the same bits
		}
	case string:
		if len(v) <= math.MaxUint8 {
			return append(append(b, codeString8, byte(len(v))), v...) //nolint:gosec // it fits
		}
	case Symbol:
		if len(v) <= math.MaxUint8 {
			return append(append(b, codeSymbol8, byte(len(v))), v...) //nolint:gosec // it fits
		}
	case []byte:
		if len(v) <= math.MaxUint8 {
			return append(append(b, codeBinary8, byte(len(v))), v...) //nolint:gosec // it fits
		}
	}
	code := codeOf(v)
	return appendBody(append(b, code), code, v)
}

func appendUlong(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, codeUlong0)
	case v <= math.MaxUint8:
		return append(b, codeSmallUlong, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
}

// codeOf returns the constructor that this package uses for the type of v.
func codeOf(v any) byte {
	switch v.(type) {
	case nil:
		return codeNull
	case bool:
		return codeBool
	case uint8:
		return codeUbyte
	case int8:
		return codeByte
	case uint16:
		return codeUshort
	case int16:
		return codeShort
	case uint32:
		return codeUint
	case int32:
		return codeInt
	case float32:
		return codeFloat
	case Char:
		return codeChar
	case Decimal32:
		return codeDecimal32
	case uint64:
		return codeUlong
	case int64:
		return codeLong
	case float64:
		return codeDouble
	case Timestamp:
		return codeTimestamp
	case Decimal64:
		return codeDecimal64
	case Decimal128:
		return codeDecimal128
	case UUID:
		return codeUUID
	case []byte:
		return codeBinary32
	case string:
		return codeString32
	case Symbol:
		return codeSymbol32
	case List:
		return codeList32
	case Map:
		return codeMap32
	case Array:
		return codeArray32
	}
	panic(fmt.Sprintf("amqp: %T is not an AMQP type", v))
}

// appendBody appends the bytes of v that follow a constructor. code must come from codeOf or from the constructor of an
// Array.
func appendBody(b []byte, code byte, v any) []byte {
	switch code {
	case codeNull, codeTrue, codeFalse, codeUint0, codeUlong0, codeList0:
		return b
	}
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	case []byte:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) //nolint:gosec // smaller than the largest message
	case string:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) //nolint:gosec // smaller than the largest message
	case Symbol:
		return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) //nolint:gosec // smaller than the largest message
	case List:
		return appendElements(b, len(v), func(b []byte) []byte {
			for _, e := range v {
				b = Append(b, e)
			}
			return b
		})
	case Map:
		return appendElements(b, 2*len(v), func(b []byte) []byte {
			for _, e := range v {
				b = Append(Append(b, e.Key), e.Value)
			}
			return b
		})
	case Array:
		return appendElements(b, len(v.Values), func(b []byte) []byte {
			if v.Descriptor != nil {
				b = Append(append(b, codeDescribed), v.Descriptor)
			}
			b = append(b, v.Of)
			for _, e := range v.Values {
				b = appendBody(b, v.Of, e)
			}
			return b
		})
	}
	return appendFixed(b, code, v)
}

// appendFixed appends a value whose width is determined by code.
func appendFixed(b []byte, code byte, v any) []byte {
	var bits uint64
	switch v := v.(type) {
	case uint8:
		bits = uint64(v)
	case int8:
		bits = uint64(v) //nolint:gosec // the same bits
	case uint16:
		bits = uint64(v)
	case int16:
		bits = uint64(v) //nolint:gosec // the same bits
	case uint32:
		bits = uint64(v)
	case int32:
		bits = uint64(v) //nolint:gosec // the same bits
	case uint64:
		bits = v
	case int64:
		bits = uint64(v) //nolint:gosec // the same bits
	case float32:
		bits = uint64(math.Float32bits(v))
	case float64:
		bits = math.Float64bits(v)
	case Char:
		bits = uint64(v)
	case Timestamp:
		bits = uint64(v) //nolint:gosec // the same bits
	case Decimal32:
		return append(b, v[:]...)
	case Decimal64:
		return append(b, v[:]...)
	case Decimal128:
		return append(b, v[:]...)
	case UUID:
		return append(b, v[:]...)
	}
	switch code >> 4 {
	case 0x5:
		return append(b, byte(bits))
	case 0x6:
		return binary.BigEndian.AppendUint16(b, uint16(bits))
	case 0x7:
		return binary.BigEndian.AppendUint32(b, uint32(bits))
	}
	return binary.BigEndian.AppendUint64(b, bits)
}

// appendElements appends the size, the count and the elements of a compound value. Size and count have 4 bytes each;
// the size is filled in last.
func appendElements(b []byte, count int, elements func([]byte) []byte) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 0), uint32(count)) //nolint:gosec // elements in memory
	b = elements(b)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4)) //nolint:gosec // smaller than the largest message
	return b
}

func appendList(b []byte, v List) []byte {
	if len(v) == 0 {
		return append(b, codeList0)
	}
	at := len(b)
	b = append(b, codeList8, 0, byte(len(v))) //nolint:gosec // fixSizes corrects it
	for _, e := range v {
		b = Append(b, e)
	}
	return fixSizes(b, at, len(v), codeList32)
}

func appendMap(b []byte, v Map) []byte {
	at := len(b)
	b = append(b, codeMap8, 0, byte(2*len(v))) //nolint:gosec // fixSizes corrects it
	for _, e := range v {
		b = Append(Append(b, e.Key), e.Value)
	}
	return fixSizes(b, at, 2*len(v), codeMap32)
}

// fixSizes fills in the size and count of the compound value at index at. One byte is reserved for each; if one of them
// needs 4 bytes, fixSizes moves the elements.
func fixSizes(b []byte, at, count int, long byte) []byte {
	size := len(b) - at - 2
	if size <= math.MaxUint8 && count <= math.MaxUint8 {
		b[at+1] = byte(size) //nolint:gosec // it fits
		return b
	}
	const more = 9 - 3
	b = append(b, make([]byte, more)...)
	copy(b[at+9:], b[at+3:len(b)-more])
	b[at] = long
	binary.BigEndian.PutUint32(b[at+1:], uint32(size+3)) //nolint:gosec // smaller than the largest message
	binary.BigEndian.PutUint32(b[at+5:], uint32(count))  //nolint:gosec // elements in memory
	return b
}

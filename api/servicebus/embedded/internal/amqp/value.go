package amqp

// AMQP types that Go lacks. All other AMQP values are nil, bool, uint8 to uint64, int8 to int64, float32, float64,
// string, and []byte for binary.
type (
	// A Symbol is an ASCII string that AMQP or an application defines, such as an error condition.
	Symbol string

	// A Timestamp is the number of milliseconds since 1970.
	Timestamp int64

	// A UUID is a UUID in the byte order of RFC 4122.
	UUID [16]byte

	// A Char is one Unicode character.
	Char uint32

	// Decimal32 is a decimal number of 4 bytes. This package does not interpret decimal numbers.
	Decimal32 [4]byte
	// Decimal64 is a decimal number of 8 bytes.
	Decimal64 [8]byte
	// Decimal128 is a decimal number of 16 bytes.
	Decimal128 [16]byte

	// A List contains values of any type.
	List []any

	// A Map contains entries in the order in which they are encoded.
	Map []Entry

	// An Entry is a key of a Map with its value.
	Entry struct{ Key, Value any }

	// An Array contains values of one type, all encoded with the constructor Of. A non-nil Descriptor applies to each
	// value.
	Array struct {
		Of         byte
		Descriptor any
		Values     []any
	}

	// A Described value is a value with a descriptor.
	Described struct{ Descriptor, Value any }
)

// Get returns the value of the entry whose key is the string or symbol name. It returns nil if there is no such entry.
func (m Map) Get(name string) any {
	for _, e := range m {
		switch key := e.Key.(type) {
		case string:
			if key == name {
				return e.Value
			}
		case Symbol:
			if string(key) == name {
				return e.Value
			}
		}
	}
	return nil
}

// Set replaces the entry whose key is the symbol name, or adds an entry.
func (m Map) Set(name Symbol, value any) Map {
	for i, e := range m {
		if e.Key == any(name) {
			m[i].Value = value
			return m
		}
	}
	return append(m, Entry{name, value})
}

// The constructors. A constructor is the byte in front of a value that determines the encoding of the value.
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeSmallUint  = 0x52
	codeSmallUlong = 0x53
	codeSmallInt   = 0x54
	codeSmallLong  = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBinary8    = 0xa0
	codeString8    = 0xa1
	codeSymbol8    = 0xa3
	codeBinary32   = 0xb0
	codeString32   = 0xb1
	codeSymbol32   = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// constructors are the constructors that an Array may have.
var constructors = []byte{
	codeNull, codeTrue, codeFalse, codeUint0, codeUlong0, codeList0,
	codeUbyte, codeByte, codeSmallUint, codeSmallUlong, codeSmallInt, codeSmallLong, codeBool,
	codeUshort, codeShort, codeUint, codeInt, codeFloat, codeChar, codeDecimal32,
	codeUlong, codeLong, codeDouble, codeTimestamp, codeDecimal64, codeDecimal128, codeUUID,
	codeBinary8, codeString8, codeSymbol8, codeBinary32, codeString32, codeSymbol32,
	codeList8, codeMap8, codeList32, codeMap32, codeArray8, codeArray32,
}

// The constructors for arrays that the server sends.
const (
	// OfTimestamp is the constructor for an Array of Timestamp.
	OfTimestamp byte = codeTimestamp
	// OfLong is the constructor for an Array of int64.
	OfLong byte = codeLong
	// OfUUID is the constructor for an Array of UUID.
	OfUUID byte = codeUUID
	// OfString is the constructor for an Array of string.
	OfString byte = codeString32
	// OfSymbol is the constructor for an Array of Symbol.
	OfSymbol byte = codeSymbol32
)

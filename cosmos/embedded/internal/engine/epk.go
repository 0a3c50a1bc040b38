package engine

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// effectiveKey returns the effective partition key of pk, which is the position of a logical partition in the key space
// that ranges divide. It must equal the value that clients compute to choose a range.
func (c *Container) effectiveKey(pk Partition) string {
	var values []query.Value
	_ = rawjson.EachElement([]byte(pk), func(v []byte) bool { // cannot fail, because a Partition is a JSON array
		if string(v) == "{}" {
			v = nil
		}
		values = append(values, query.ParseValue(v))
		return true
	})
	switch {
	case c.hierarchical:
		var b strings.Builder
		for _, v := range values {
			b.WriteString(hashV2(v))
		}
		return b.String()
	case c.keyVersion == 2:
		return hashV2(values...)
	}
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%024d%08X", 0, hashMurmur32(appendComponent(nil, v, 0)))
	}
	return b.String()
}

// hashV2 computes hash version 2. It clears the two highest bits, so that every hash is less than FF.
func hashV2(values ...query.Value) string {
	var text []byte
	for _, v := range values {
		text = appendComponent(text, v, 0xFF)
	}
	low, high := hashMurmur128(text)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], high)
	binary.BigEndian.PutUint64(b[8:], low)
	b[0] &= 0x3F
	return strings.ToUpper(hex.EncodeToString(b[:]))
}

// appendComponent appends one partition key value in the encoding that the hash uses.
func appendComponent(b []byte, v query.Value, end byte) []byte {
	switch v.Kind {
	case query.Undefined, query.Array, query.Object: // arrays and objects cannot be keys
		b = append(b, 0)
	case query.Null:
		return append(b, 1)
	case query.Bool:
		if v.Bool {
			return append(b, 3)
		}
		return append(b, 2)
	case query.Number:
		return binary.LittleEndian.AppendUint64(append(b, 5), math.Float64bits(v.Num))
	case query.String:
		return append(append(append(b, 8), v.Text...), end)
	}
	return b
}

// hashMurmur32 is MurmurHash3 for x86, 32 bits, seed 0.
func hashMurmur32(data []byte) uint32 {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	h, rest := uint32(0), data
	for ; len(rest) >= 4; rest = rest[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(rest)), 13)*5 + 0xe6546b64
	}
	if len(rest) > 0 {
		var tail [4]byte
		copy(tail[:], rest)
		h ^= mix(binary.LittleEndian.Uint32(tail[:]))
	}
	h ^= uint32(len(data)) //nolint:gosec // the algorithm uses the length modulo 2^32
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// hashMurmur128 is MurmurHash3 for x64, 128 bits, seed 0.
func hashMurmur128(data []byte) (low, high uint64) {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	rest := data
	for ; len(rest) >= 16; rest = rest[16:] {
		low = (bits.RotateLeft64(low^mix1(binary.LittleEndian.Uint64(rest)), 27)+high)*5 + 0x52dce729
		high = (bits.RotateLeft64(high^mix2(binary.LittleEndian.Uint64(rest[8:])), 31)+low)*5 + 0x38495ab5
	}
	if len(rest) > 0 {
		var tail [16]byte
		copy(tail[:], rest)
		high ^= mix2(binary.LittleEndian.Uint64(tail[8:]))
		low ^= mix1(binary.LittleEndian.Uint64(tail[:]))
	}
	final := func(k uint64) uint64 {
		k = (k ^ k>>33) * 0xff51afd7ed558ccd
		k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
		return k ^ k>>33
	}
	low ^= uint64(len(data))
	high ^= uint64(len(data))
	low += high
	high += low
	low, high = final(low), final(high)
	low += high
	return low, high + low
}

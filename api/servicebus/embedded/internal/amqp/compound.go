package amqp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// openCompound returns a Decoder for the contents b of a compound value, and the number of elements.
func (d *Decoder) openCompound(code byte, b []byte) (*Decoder, uint32, error) {
	inner := &Decoder{b: b, depth: d.depth, empty: d.empty}
	if code>>4 == 0xc || code>>4 == 0xe {
		count, err := inner.readByte()
		return inner, uint32(count), err
	}
	count, err := inner.takeBytes(4)
	if err != nil {
		return nil, 0, err
	}
	return inner, binary.BigEndian.Uint32(count), nil
}

func (d *Decoder) readList(code byte, b []byte) (any, error) {
	inner, count, err := d.openCompound(code, b)
	if err != nil {
		return nil, err
	}
	if uint64(count) > uint64(len(inner.b)) {
		return nil, errShort // every element needs at least one byte
	}
	list := make(List, count)
	for i := range list {
		if list[i], err = inner.Value(); err != nil {
			return nil, err
		}
	}
	return list, inner.checkEnd()
}

func (d *Decoder) readPairs(code byte, b []byte) (any, error) {
	inner, count, err := d.openCompound(code, b)
	if err != nil {
		return nil, err
	}
	if count%2 != 0 {
		return nil, errors.New("amqp: a key of a map has no value")
	}
	if uint64(count) > uint64(len(inner.b)) {
		return nil, errShort
	}
	pairs := make(Map, count/2)
	for i := range pairs {
		if pairs[i].Key, err = inner.Value(); err != nil {
			return nil, err
		}
		if pairs[i].Value, err = inner.Value(); err != nil {
			return nil, err
		}
	}
	return pairs, inner.checkEnd()
}

func (d *Decoder) readArray(code byte, b []byte) (any, error) {
	inner, count, err := d.openCompound(code, b)
	if err != nil {
		return nil, err
	}
	var array Array
	if array.Of, err = inner.readByte(); err != nil {
		return nil, err
	}
	described := array.Of == codeDescribed
	if described {
		if array.Descriptor, err = inner.Value(); err != nil {
			return nil, err
		}
		if array.Of, err = inner.readByte(); err != nil {
			return nil, err
		}
	}
	switch {
	case described && array.Descriptor == nil:
		return nil, errors.New("amqp: the elements of an array are described by null")
	case !slices.Contains(constructors, array.Of):
		return nil, fmt.Errorf("amqp: no type has the constructor 0x%02x", array.Of)
	case array.Of>>4 != 4 && uint64(count) > uint64(len(inner.b)):
		return nil, errShort
	case array.Of>>4 == 4 && (count > maxEmpty || *d.empty+int(count) > maxEmpty):
		return nil, fmt.Errorf("amqp: more than %d elements have size zero", maxEmpty)
	case array.Of>>4 == 4:
		*d.empty += int(count)
	}
	if inner.depth++; inner.depth >= MaxNesting {
		return nil, errNested
	}
	array.Values = make([]any, count)
	for i := range array.Values {
		if array.Values[i], err = inner.readBody(array.Of); err != nil {
			return nil, err
		}
	}
	switch array.Of >> 4 {
	case 0xa, 0xc, 0xe: // use the constructor with 4-byte sizes, because it fits a value of any size
		array.Of += 0x10
	}
	return array, inner.checkEnd()
}

func (d *Decoder) checkEnd() error {
	if len(d.b) > 0 {
		return fmt.Errorf("amqp: %d bytes follow the last element", len(d.b))
	}
	return nil
}

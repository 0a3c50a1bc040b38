// Package amqpframe reads the AMQP 1.0 frames that a process and its Service Bus namespace exchange.
//
// The simulation and package crashsites intercept the connections between a hub and its bus. The simulation uses
// [Names] to name the frames of a chunk, and delivers a chunk when the scheduler chooses it. Package crashsites uses a
// [Deframer] to track links and deliveries, and kills a process at a chosen step. Package amqpframe decodes only what
// these two need, and skips all other frames.
package amqpframe

import (
	"encoding/binary"
	"strings"
)

// The performatives that change the state of a connection.
const (
	Begin       = 0x11
	Attach      = 0x12
	Transfer    = 0x14
	Disposition = 0x15
)

// Accepted is the outcome of a delivery that its receiver has settled.
const Accepted = 0x24

const headerSize = 8 // size of the protocol header, and of a frame header

// A Frame is a performative with its encoded fields.
type Frame struct {
	Channel uint64
	Code    uint64 // the performative
	fields  [][]byte
}

// Field returns the encoded field at position i, or nil if the frame has fewer fields.
func (f *Frame) Field(i int) []byte {
	if i < len(f.fields) {
		return f.fields[i]
	}
	return nil
}

// A Deframer splits the bytes of one direction of a connection into frames.
type Deframer struct{ rest []byte }

// Feed appends p to the bytes received so far, and returns the frames that are now complete.
func (d *Deframer) Feed(p []byte) (found []Frame) {
	d.rest = append(d.rest, p...)
	for len(d.rest) >= headerSize {
		size := headerSize
		if string(d.rest[:4]) != "AMQP" {
			size = max(headerSize, int(binary.BigEndian.Uint32(d.rest)))
			if len(d.rest) < size {
				break
			}
			if f, ok := parseFrame(d.rest[:size]); ok {
				found = append(found, f)
			}
		}
		d.rest = d.rest[size:]
	}
	return found
}

// parseFrame reads one frame.
func parseFrame(p []byte) (f Frame, ok bool) {
	const isAMQP = 0
	body := min(4*int(p[4]), len(p))
	if p[5] != isAMQP || body == len(p) {
		return f, false // a SASL frame, or an empty frame that keeps the connection open
	}
	f.Channel = uint64(binary.BigEndian.Uint16(p[6:]))
	code, fields, ok := Described(p[body:])
	f.Code, f.fields = code, fields
	return f, ok
}

// Described reads a list with a descriptor, such as a performative or the state of a
// delivery.
func Described(p []byte) (code uint64, fields [][]byte, ok bool) {
	if len(p) < 2 || p[0] != 0 {
		return 0, nil, false
	}
	descriptor := p[1:]
	n := valueWidth(descriptor)
	if n == 0 {
		return 0, nil, false
	}
	fields, ok = parseList(descriptor[n:])
	return Number(descriptor[:n]), fields, ok
}

// parseList returns the elements of a list.
func parseList(p []byte) (elements [][]byte, ok bool) {
	n := valueWidth(p)
	if n == 0 {
		return nil, false
	}
	var inside []byte
	switch {
	case p[0] == 0x45: // the empty list
	case p[0] == 0xc0 && n >= 3: // the elements follow the size and the element count
		inside = p[3:n]
	case p[0] == 0xd0 && n >= 9:
		inside = p[9:n]
	default:
		return nil, false
	}
	for len(inside) > 0 {
		n := valueWidth(inside)
		if n == 0 {
			return nil, false
		}
		elements, inside = append(elements, inside[:n]), inside[n:]
	}
	return elements, true
}

// valueWidth returns the encoded size of the first value in p, or 0 if p is incomplete. The upper four bits of the
// first byte say how the length is encoded.
func valueWidth(p []byte) int {
	if len(p) == 0 {
		return 0
	}
	n := 0
	switch p[0] >> 4 {
	case 0x0: // a descriptor and a value
		d := valueWidth(p[1:])
		if d == 0 {
			return 0
		}
		v := valueWidth(p[1+d:])
		if v == 0 {
			return 0
		}
		n = 1 + d + v
	case 0x4:
		n = 1
	case 0x5, 0x6, 0x7, 0x8, 0x9:
		n = 1 + 1<<(p[0]>>4-5)
	case 0xa, 0xc, 0xe:
		if len(p) < 2 {
			return 0
		}
		n = 2 + int(p[1])
	case 0xb, 0xd, 0xf:
		if len(p) < 5 {
			return 0
		}
		n = 5 + int(binary.BigEndian.Uint32(p[1:]))
	}
	if n > len(p) {
		return 0
	}
	return n
}

// Number reads an unsigned integer of any width. It returns 0 for an empty p.
func Number(p []byte) (n uint64) {
	if len(p) == 0 {
		return 0
	}
	for _, b := range p[1:] {
		n = n<<8 | uint64(b)
	}
	return n
}

// IsTrue reports whether p is the boolean true, in either of its two encodings.
func IsTrue(p []byte) bool {
	return len(p) == 1 && p[0] == 0x41 || len(p) == 2 && p[0] == 0x56 && p[1] == 1
}

// textOf reads a string or a symbol.
func textOf(p []byte) string {
	switch {
	case len(p) > 2 && p[0]>>4 == 0xa:
		return string(p[2:])
	case len(p) > 5 && p[0]>>4 == 0xb:
		return string(p[5:])
	}
	return ""
}

// Queue returns the name of the queue in a source or a target.
func Queue(terminus []byte) string {
	_, fields, ok := Described(terminus)
	if !ok || len(fields) == 0 {
		return ""
	}
	address := textOf(fields[0])
	return address[strings.LastIndex(address, "/")+1:]
}

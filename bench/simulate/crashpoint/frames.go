//go:build unix

package crashpoint

import (
	"encoding/binary"
	"strings"
)

// What AMQP calls the frames that say where a hub stands with its bus.
const (
	begin       = 0x11
	attach      = 0x12
	transfer    = 0x14
	disposition = 0x15

	accepted = 0x24
)

// A frame is a performative with its fields, each as it is on the wire.
type frame struct {
	channel uint64
	code    uint64
	fields  [][]byte
}

func (f *frame) field(i int) []byte {
	if i < len(f.fields) {
		return f.fields[i]
	}
	return nil
}

// A deframer takes one direction of a connection apart.
type deframer struct{ rest []byte }

// feed returns the frames that p completes. It asks for no more than the AMQP of a
// client that works, and skips what it does not know.
func (d *deframer) feed(p []byte) (found []frame) {
	const header = 8 // of the protocol, and of a frame
	d.rest = append(d.rest, p...)
	for len(d.rest) >= header {
		size := header
		if string(d.rest[:4]) != "AMQP" {
			size = max(header, int(binary.BigEndian.Uint32(d.rest)))
			if len(d.rest) < size {
				break
			}
			if f, ok := parse(d.rest[:size]); ok {
				found = append(found, f)
			}
		}
		d.rest = d.rest[size:]
	}
	return found
}

// parse reads one frame.
func parse(p []byte) (f frame, ok bool) {
	const isAMQP = 0
	body := min(4*int(p[4]), len(p))
	if p[5] != isAMQP || body == len(p) {
		return f, false // SASL, or a sign of life
	}
	f.channel = uint64(binary.BigEndian.Uint16(p[6:]))
	code, fields, ok := described(p[body:])
	f.code, f.fields = code, fields
	return f, ok
}

// described reads a list that says what it is.
func described(p []byte) (code uint64, fields [][]byte, ok bool) {
	if len(p) < 2 || p[0] != 0 {
		return 0, nil, false
	}
	descriptor := p[1:]
	n := width(descriptor)
	if n == 0 {
		return 0, nil, false
	}
	fields, ok = list(descriptor[n:])
	return number(descriptor[:n]), fields, ok
}

// list returns the elements of a list.
func list(p []byte) (elements [][]byte, ok bool) {
	n := width(p)
	if n == 0 {
		return nil, false
	}
	var inside []byte
	switch {
	case p[0] == 0x45: // which is empty
	case p[0] == 0xc0 && n >= 3: // behind its size and the count of its elements
		inside = p[3:n]
	case p[0] == 0xd0 && n >= 9:
		inside = p[9:n]
	default:
		return nil, false
	}
	for len(inside) > 0 {
		n := width(inside)
		if n == 0 {
			return nil, false
		}
		elements, inside = append(elements, inside[:n]), inside[n:]
	}
	return elements, true
}

// width is how many bytes the value has with which p begins, 0 if p ends before it
// does. The upper half of a value's first byte says how its length is told.
func width(p []byte) int {
	if len(p) == 0 {
		return 0
	}
	n := 0
	switch p[0] >> 4 {
	case 0x0: // described: a descriptor, and a value
		d := width(p[1:])
		if d == 0 {
			return 0
		}
		v := width(p[1+d:])
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

// number reads an unsigned number of any size; nothing is 0.
func number(p []byte) (n uint64) {
	if len(p) == 0 {
		return 0
	}
	for _, b := range p[1:] {
		n = n<<8 | uint64(b)
	}
	return n
}

// isTrue reads a boolean of either form.
func isTrue(p []byte) bool {
	return len(p) == 1 && p[0] == 0x41 || len(p) == 2 && p[0] == 0x56 && p[1] == 1
}

// text reads a string or a symbol.
func text(p []byte) string {
	switch {
	case len(p) > 2 && p[0]>>4 == 0xa:
		return string(p[2:])
	case len(p) > 5 && p[0]>>4 == 0xb:
		return string(p[5:])
	}
	return ""
}

// queueOf is the queue that a source or a target names.
func queueOf(terminus []byte) string {
	_, fields, ok := described(terminus)
	if !ok || len(fields) == 0 {
		return ""
	}
	address := text(fields[0])
	return address[strings.LastIndex(address, "/")+1:]
}

package amqp

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The types of frames.
const (
	FrameAMQP byte = 0
	FrameSASL byte = 1
)

const (
	frameHeader = 8

	// MinMaxFrameSize is the smallest maximum frame size that a peer may announce.
	MinMaxFrameSize = 512
)

// A Header is the first data that a peer sends. It names the protocol and its version.
type Header [8]byte

// The protocol headers.
var (
	HeaderAMQP = Header{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
	HeaderSASL = Header{'A', 'M', 'Q', 'P', 3, 1, 0, 0}
)

// A Frame is an AMQP frame. A frame with an empty Body only keeps the connection alive.
type Frame struct {
	Type    byte
	Channel uint16
	Body    []byte
}

// ReadFrame reads the next frame into new memory. If its size is invalid or exceeds largest, ReadFrame allocates
// nothing and returns an *Error with condition FramingError.
func ReadFrame(r io.Reader, largest uint32) (Frame, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(head[:])
	skip := uint32(head[4]) * 4 // length of the header, in bytes
	switch {
	case size > largest:
		return Frame{}, Errorf(FramingError, "a frame of %d bytes: at most %d were agreed", size, largest)
	case skip < frameHeader || size < skip:
		return Frame{}, Errorf(FramingError, "a frame of %d bytes whose header has %d", size, skip)
	}
	body := make([]byte, size-frameHeader)
	if _, err := io.ReadFull(r, body); err != nil {
		return Frame{}, fmt.Errorf("amqp: within a frame: %w", err)
	}
	return Frame{Type: head[5], Channel: binary.BigEndian.Uint16(head[6:]), Body: body[skip-frameHeader:]}, nil
}

// AppendFrame appends a frame to b. The body is p, which may be nil, followed by payload.
func AppendFrame(b []byte, kind byte, channel uint16, p Performative, payload []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, frameHeader/4, kind, byte(channel>>8), byte(channel)) //nolint:gosec // both halves
	if p != nil {
		b = AppendPerformative(b, p)
	}
	b = append(b, payload...)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at)) //nolint:gosec // not larger than the peer's frames
	return b
}

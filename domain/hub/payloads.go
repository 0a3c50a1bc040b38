package hub

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A payloadSpan is a range of events whose payloads are adjacent in one object, so that the object is opened once for
// all of them. The first event has a payload.
type payloadSpan struct {
	from, to int // indexes of the events: from, inclusive, to to, exclusive
	repository.Section
}

// maxSpan is the maximum number of events in a payloadSpan.
const maxSpan = 512

// payloadsFrom returns the span that begins at the first payload of the events from <= i < to. It returns false if
// there is no payload.
func (l *eventList) payloadsFrom(from, to int) (s payloadSpan, found bool) {
	for from < to && l.payloadAt(from).IsZero() {
		from++
	}
	if from == to {
		return s, false
	}
	s = payloadSpan{from, from, l.payloadAt(from)}
	for s.to++; s.to < min(to, from+maxSpan); s.to++ {
		longer, ok := extendSpan(s.Section, l.payloadAt(s.to))
		if !ok {
			break
		}
		s.Section = longer
	}
	return s, true
}

// extendSpan appends payload to span, if payload follows span in the same object; otherwise it returns false. An empty
// payload does not change span.
func extendSpan(span, payload repository.Section) (repository.Section, bool) {
	switch {
	case payload.IsZero():
		return span, true
	case span.Object != payload.Object || span.Offset+span.Length > payload.Offset:
		return repository.Section{}, false
	}
	span.Length = payload.Offset + payload.Length - span.Offset
	return span, true
}

// payloads reads the payloads of a span in order from a single reader, and verifies the checksum of each.
type payloads struct {
	source io.ReadCloser // nil if no span is open
	buffer *bufio.Reader
	at     int64 // offset in the object
	to     int   // index of the first event after the span

	of   *repository.StoredEvent // event whose payload is being read, or nil
	left int64                   // unread bytes of this payload
	sum  uint32                  // checksum of the bytes that were read
}

// setSpan sets the span from which p reads.
func (p *payloads) setSpan(opened openSpan) {
	const limit = 32 << 10
	if size := int(min(limit, opened.Length)); p.buffer == nil || p.buffer.Size() < size {
		p.buffer = bufio.NewReaderSize(opened.source, size)
	} else {
		p.buffer.Reset(opened.source)
	}
	p.source, p.at, p.to, p.of = opened.source, opened.Offset, opened.to, nil
}

// beginPayload starts reading the payload of e, which must be the next in the span.
func (p *payloads) beginPayload(e *repository.StoredEvent) error {
	p.of, p.left, p.sum = e, e.PayloadAt.Length, 0
	gap := e.PayloadAt.Offset - p.at
	p.at = e.PayloadAt.Offset
	_, err := p.buffer.Discard(int(gap))
	return p.payloadError(err)
}

// read reads more of the payload, which must not have ended. It returns the last bytes only if the checksum of the
// whole payload is correct.
func (p *payloads) read(b []byte) (int, error) {
	n, err := p.buffer.Read(b[:min(int64(len(b)), p.left)])
	p.sum = repository.UpdateSum(p.sum, b[:n])
	p.left -= int64(n)
	p.at += int64(n)
	at := p.of.PayloadAt
	if p.left == 0 && p.sum != at.Sum {
		return 0, p.payloadError(domain.Errorf(domain.Damaged, "object %s: the bytes from %d on differ from the stored bytes", at.Object, at.Offset))
	}
	if n > 0 {
		return n, nil
	}
	return 0, p.payloadError(err)
}

// payloadError adds the id of the current event to err.
func (p *payloads) payloadError(err error) error {
	if err == nil {
		return nil
	}
	if isEOF(err) { // the object is shorter than it should be
		err = domain.Errorf(domain.Damaged, "object %s: %w", p.of.PayloadAt.Object, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("payload of event %s: %w", p.of.ID, err)
}

// isEOF reports whether err means the end of the data rather than a failure.
func isEOF(err error) bool { return errors.Is(err, io.EOF) && domain.KindOf(err) == domain.Unknown }

// closeBefore closes the span if it does not contain event i or a later one.
func (p *payloads) closeBefore(i int) error {
	if i < p.to {
		return nil
	}
	return p.close()
}

// close closes the span, if one is open.
func (p *payloads) close() error {
	if p.source == nil {
		return nil
	}
	err := p.source.Close()
	p.source, p.of = nil, nil
	return err
}

package hub

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A payloadSpan is a range of events whose payloads are adjacent in one object, so that one
// opening of the object serves all of them. The first event has a payload.
type payloadSpan struct {
	from, to int // the span has the events [from, to) of the list
	repository.Section
}

// maxSpan is the maximum number of events in a span.
const maxSpan = 512

// payloadsFrom returns the span that begins with the first payload of the events in [from, to).
// It returns false if these events have no payloads.
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

// extendSpan returns span with payload at its end, if the payload follows it in the same
// object. Without a payload, it returns span unchanged.
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

// payloads reads the payloads of a span in order, from one reader, and compares each
// with its checksum.
type payloads struct {
	source io.ReadCloser // nil: no span is open
	buffer *bufio.Reader
	at     int64 // offset in the object
	to     int   // the event after the span

	of   *repository.StoredEvent // the event whose payload is being read; nil: no payload was begun
	left int64                   // remaining bytes of this payload
	sum  uint32                  // checksum of the bytes read so far
}

// setSpan sets the open span that p reads from.
func (p *payloads) setSpan(opened openSpan) {
	const limit = 32 << 10
	if size := int(min(limit, opened.Length)); p.buffer == nil || p.buffer.Size() < size {
		p.buffer = bufio.NewReaderSize(opened.source, size)
	} else {
		p.buffer.Reset(opened.source)
	}
	p.source, p.at, p.to, p.of = opened.source, opened.Offset, opened.to, nil
}

// beginPayload moves to the payload of e, which is the next payload of the span.
func (p *payloads) beginPayload(e *repository.StoredEvent) error {
	p.of, p.left, p.sum = e, e.PayloadAt.Length, 0
	gap := e.PayloadAt.Offset - p.at
	p.at = e.PayloadAt.Offset
	_, err := p.buffer.Discard(int(gap))
	return p.payloadError(err)
}

// read reads a part of the rest of the payload. The rest must not be empty. It returns the last
// bytes only if the checksum of the whole payload is right.
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

// payloadError adds the event whose payload was read to err.
func (p *payloads) payloadError(err error) error {
	if err == nil {
		return nil
	}
	if isEOF(err) { // the object is too short
		err = domain.Errorf(domain.Damaged, "object %s: %w", p.of.PayloadAt.Object, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("payload of event %s: %w", p.of.ID, err)
}

// isEOF reports whether err says that a reader has reached its end, not that it has failed.
func isEOF(err error) bool { return errors.Is(err, io.EOF) && domain.KindOf(err) == domain.Unknown }

// closeBefore closes the span if it ends before event i.
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

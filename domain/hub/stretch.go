package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// maxStretch bounds the events in memory; their payloads never are.
const maxStretch = 512

// stretches yields events in stretches whose payloads lie side by side in one
// object, so that the object is opened once for all of them. A stretch is valid
// until the next one is asked for.
func stretches(events iter.Seq2[repository.StoredEvent, error]) iter.Seq2[[]repository.StoredEvent, error] {
	return func(yield func([]repository.StoredEvent, error) bool) {
		var stretch []repository.StoredEvent
		var span repository.Section
		for e, err := range events {
			if err != nil {
				yield(nil, err)
				return
			}
			longer, ok := extended(span, e.PayloadAt)
			if !ok || len(stretch) == maxStretch {
				if !yield(stretch, nil) {
					return
				}
				stretch, longer = stretch[:0], e.PayloadAt
			}
			stretch, span = append(stretch, e), longer
		}
		if len(stretch) > 0 {
			yield(stretch, nil)
		}
	}
}

// extended returns span with payload at its end, if that lies behind it in the
// same object. Where there is no payload, span stays as it is; where there was
// none before, it starts with this one.
func extended(span, payload repository.Section) (repository.Section, bool) {
	switch {
	case payload.IsZero():
		return span, true
	case span.IsZero():
		return payload, true
	case span.Object != payload.Object || span.Offset+span.Length > payload.Offset:
		return repository.Section{}, false
	}
	span.Length = payload.Offset + payload.Length - span.Offset
	return span, true
}

// payloads reads the payloads of a stretch in order, from one reader that spans
// them all, and compares each with its checksum.
type payloads struct {
	source io.ReadCloser // nil: none is open
	buffer *bufio.Reader
	at     int64 // in the object

	of   *repository.StoredEvent // whose payload is being read
	left int64                   // bytes of it
	sum  uint32                  // of what was read of it
}

// open opens the payload of first and those of the events behind it.
func (p *payloads) open(ctx context.Context, content repository.Content, first *repository.StoredEvent, behind []repository.StoredEvent) error {
	span, last := first.PayloadAt, first
	for i := range behind {
		if longer, ok := extended(span, behind[i].PayloadAt); ok {
			span, last = longer, &behind[i]
		}
	}
	source, err := content.Open(ctx, span)
	if domain.KindOf(err) == domain.NotFound { // a bundle names it, so it must be there
		err = domain.Errorf(domain.Damaged, "payloads are missing: %w", err)
	}
	if err != nil {
		return fmt.Errorf("open the payloads of events %s to %s: %w", first.ID, last.ID, err)
	}
	const most = 32 << 10
	if size := int(min(most, span.Length)); p.buffer == nil || p.buffer.Size() < size {
		p.buffer = bufio.NewReaderSize(source, size)
	} else {
		p.buffer.Reset(source)
	}
	p.source, p.at, p.of = source, span.Offset, nil
	return nil
}

// begin goes to the payload of e, which lies behind the one before.
func (p *payloads) begin(e *repository.StoredEvent) error {
	p.of, p.left, p.sum = e, e.PayloadAt.Length, 0
	gap := e.PayloadAt.Offset - p.at
	p.at = e.PayloadAt.Offset
	_, err := p.buffer.Discard(int(gap))
	return p.fault(err)
}

// read reads some of what is left of the payload, which is something. Its last
// bytes come only if the whole is what was stored.
func (p *payloads) read(b []byte) (int, error) {
	n, err := p.buffer.Read(b[:min(int64(len(b)), p.left)])
	p.sum = repository.UpdateSum(p.sum, b[:n])
	p.left -= int64(n)
	p.at += int64(n)
	at := p.of.PayloadAt
	if p.left == 0 && p.sum != at.Sum {
		return 0, p.fault(domain.Errorf(domain.Damaged, "object %s: the bytes from %d on are not those that were stored", at.Object, at.Offset))
	}
	if n > 0 {
		return n, nil
	}
	return 0, p.fault(err)
}

// fault says of whose payload err is.
func (p *payloads) fault(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) && domain.KindOf(err) == domain.Unknown { // the reader ended too soon
		err = domain.Errorf(domain.Damaged, "object %s: %w", p.of.PayloadAt.Object, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("payload of event %s: %w", p.of.ID, err)
}

// close ends the reading, if any is under way.
func (p *payloads) close() error {
	if p.source == nil {
		return nil
	}
	err := p.source.Close()
	p.source, p.of = nil, nil
	return err
}

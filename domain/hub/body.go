package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// WriteBody writes the body of the bundle, a JSON array with one element a
// line: in content mode manifest the events, in content mode inline their
// payloads alone. It is the same byte for byte whenever it is written, and it is
// streamed: no more than a few payloads are in memory at a time.
//
// If it fails, what has been written is not a whole body.
func (p *Peeked) WriteBody(ctx context.Context, w io.Writer) error {
	b := body{
		mode:    p.Content,
		content: p.content,
		w:       bufio.NewWriterSize(w, 64<<10),
	}
	for e, err := range p.events {
		if err != nil {
			return err
		}
		if err := b.add(ctx, e); err != nil {
			return err
		}
	}
	if n := b.lines + len(b.pending); n != p.Count {
		return domain.Errorf(domain.Damaged, "bundle %s: it has %d events, but the store gave %d of them", p.ID, p.Count, n)
	}
	return b.close(ctx)
}

// A body gathers events whose payloads lie side by side in one object, so that
// the object is opened once for all of them.
type body struct {
	mode    domain.ContentMode
	content repository.Content
	w       *bufio.Writer

	pending []repository.StoredEvent
	span    repository.Section // from the first payload of pending to the last
	lines   int
	scratch []byte
}

// maxPending bounds the events in memory; their payloads never are.
const maxPending = 512

func (b *body) add(ctx context.Context, e repository.StoredEvent) error {
	span, ok := extended(b.span, e.PayloadAt)
	if !ok || len(b.pending) == maxPending {
		if err := b.flush(ctx); err != nil {
			return err
		}
		span = e.PayloadAt
	}
	b.pending, b.span = append(b.pending, e), span
	return nil
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

func (b *body) close(ctx context.Context) error {
	if err := b.flush(ctx); err != nil {
		return err
	}
	if _, err := b.w.WriteString("\n]\n"); err != nil {
		return err
	}
	return b.w.Flush()
}

func (b *body) flush(ctx context.Context) (err error) {
	payloads, err := openPayloads(ctx, b.content, b.span)
	if err != nil {
		return fmt.Errorf("open the payloads of events %s to %s: %w", b.pending[0].ID, b.pending[len(b.pending)-1].ID, err)
	}
	defer func() {
		if cerr := payloads.Close(); err == nil {
			err = cerr
		}
	}()
	for i := range b.pending {
		if err := b.line(&b.pending[i], payloads); err != nil {
			return err
		}
	}
	b.pending = b.pending[:0]
	return nil
}

func (b *body) line(e *repository.StoredEvent, payloads *payloads) error {
	start := ",\n"
	if b.lines == 0 {
		start = "[\n"
	}
	b.lines++
	line := append(b.scratch[:0], start...)
	payload := !e.PayloadAt.IsZero()
	switch {
	case b.mode == domain.Inline && !payload:
		line = append(line, "null"...)
	case b.mode != domain.Inline:
		line = appendEvent(line, e)
		if payload {
			line = append(line, `,"payload":`...)
		} else {
			line = append(line, '}')
		}
	}
	b.scratch = line
	if _, err := b.w.Write(line); err != nil || !payload {
		return err
	}
	if err := payloads.copy(b.w, e.PayloadAt); err != nil {
		return fmt.Errorf("payload of event %s: %w", e.ID, err)
	}
	if b.mode != domain.Inline {
		return b.w.WriteByte('}')
	}
	return nil
}

// appendEvent appends the fields of e as an open JSON object: the caller adds
// the payload, if any, and the closing brace. The words of package domain are
// printable ASCII, so quoting them for Go quotes them for JSON.
func appendEvent(b []byte, e *repository.StoredEvent) []byte {
	b = append(b, `{"id":"`...)
	b = e.ID.Append(b)
	b = append(b, `","recipient":"`...)
	b = append(b, e.Recipient.String()...)
	b = append(b, `","origin":"`...)
	b = append(b, e.Origin.String()...)
	b = append(b, `","contentType":`...)
	b = strconv.AppendQuote(b, e.ContentType.String())
	b = append(b, `,"documentType":`...)
	b = strconv.AppendQuote(b, e.DocumentType.String())
	b = append(b, `,"supportsBundling":`...)
	b = strconv.AppendBool(b, e.SupportsBundling)
	b = append(b, `,"weight":`...)
	b = strconv.AppendInt(b, int64(e.Weight), 10)
	b = append(b, `,"sequence":`...)
	return strconv.AppendInt(b, int64(e.Sequence), 10)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// payloads reads the payloads of neighbouring events in order, from one reader
// that spans them all.
type payloads struct {
	r  io.ReadCloser
	at int64
}

func openPayloads(ctx context.Context, content repository.Content, span repository.Section) (*payloads, error) {
	if span.IsZero() {
		return &payloads{}, nil
	}
	r, err := content.Open(ctx, span)
	if domain.KindOf(err) == domain.NotFound { // a bundle names it, so it must be there
		err = domain.Errorf(domain.Damaged, "payloads are missing: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return &payloads{r: r, at: span.Offset}, nil
}

func (p *payloads) copy(w io.Writer, s repository.Section) error {
	var err error
	if gap := s.Offset - p.at; gap > 0 {
		_, err = io.CopyN(io.Discard, p.r, gap)
	}
	sum := crc32.New(castagnoli)
	if err == nil {
		_, err = io.CopyN(w, io.TeeReader(p.r, sum), s.Length)
	}
	p.at = s.Offset + s.Length
	if err == nil && sum.Sum32() != s.Sum {
		err = domain.Errorf(domain.Damaged, "object %s: the bytes from %d on are not those that were stored", s.Object, s.Offset)
	}
	if errors.Is(err, io.EOF) && domain.KindOf(err) == domain.Unknown { // the reader ended too soon
		return domain.Errorf(domain.Damaged, "object %s: %w", s.Object, io.ErrUnexpectedEOF)
	}
	return err
}

func (p *payloads) Close() error {
	if p.r == nil {
		return nil
	}
	return p.r.Close()
}

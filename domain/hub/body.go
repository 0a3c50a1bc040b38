package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Body reads the body of a bundle, which has the same bytes for every reader. After a Seek, it does not open the
// payloads before the offset. After an error, every later Read returns the same error, and the bytes that were read are
// incomplete. A Body is safe for concurrent use.
type Body interface {
	io.ReadSeekCloser

	// LimitReadAhead makes the body open no payload that begins at or after end, until a Read begins there. Without a
	// limit, it opens the payloads that will probably be read next.
	LimitReadAhead(end int64)

	// Err returns the error of the first Read that failed, or nil.
	Err() error
}

// A composedBody is a Body that is composed from the events of a bundle while it is read. Only a few payloads are in
// memory at a time.
type composedBody struct {
	ctx    context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	bundle *domain.Bundle
	events iter.Seq2[repository.StoredEvent, error]
	ahead  *readAhead

	mu   sync.Mutex
	list *eventList // nil until the events are read
	want int64      // offset at which the next Read begins
	err  error      // error of an earlier Read, or errClosed

	// The following fields are the state of the composition.
	begun    bool
	at       int64 // offset of the next byte; it is in text or, if text is empty, in the payload
	text     []byte
	buffer   []byte // backing array of text
	next     int    // index of the event that follows text and payload
	current  repository.StoredEvent
	payload  *repository.StoredEvent // current event, if its payload has not been read completely; else nil
	left     int64                   // remaining bytes of the payload
	payloads payloads
	frame    jsonFramer
}

// maxSkip limits how many bytes of an open object are read and discarded to reach an offset. For larger distances, the
// object is opened again.
const maxSkip = 128 << 10

var errClosed = errors.New("the body of the bundle was closed")

// Open returns the body of the bundle, which the caller must close. It reads from the store only if an older version
// opened the bundle, because that version did not store the length and digest of the body.
func (p *PeekedBundle) Open(ctx context.Context) (Body, error) {
	if p.Content == domain.Request {
		return &storedBody{ctx: ctx, bundle: &p.Bundle, hub: p.hub}, nil
	}
	if p.Body == (domain.Body{}) {
		m := newBodyDigest(p.ID, p.Content)
		for e, err := range p.events {
			if err != nil {
				return nil, err
			}
			m.add(&e)
		}
		if err := isWhole(&p.Bundle, m.frame.lines); err != nil {
			return nil, err
		}
		p.Body = m.measuredBody()
	}
	ahead := newReadAhead(ctx, p.hub.content, p.hub.opens)
	ahead.grow, ahead.missing = p.GrowMemory, p.hub.payloadMissing
	if p.Count > ManyEvents {
		ahead.maxRoom = manyAhead
	}
	b := &composedBody{ctx: ctx, bundle: &p.Bundle, events: p.events, ahead: ahead}
	if p.list != nil {
		b.takeEvents(p.list)
	}
	return b, nil
}

func isWhole(b *domain.Bundle, events int) error {
	if events != b.Count {
		return domain.Errorf(domain.Damaged, "bundle %s: it has %d events, but the store returned %d of them", b.ID, b.Count, events)
	}
	return nil
}

// Seek implements io.Seeker. It only sets the offset for the next Read.
func (b *composedBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return seekOffset(&b.want, b.bundle.Body.Length, offset, whence)
}

// seekOffset returns the new offset, with the meaning of whence as in io.Seeker.
func seekOffset(at *int64, length, offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += *at
	case io.SeekEnd:
		offset += length
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d: before the beginning", offset)
	}
	*at = offset
	return offset, nil
}

// LimitReadAhead implements Body. It is as expensive as a Seek to end.
func (b *composedBody) LimitReadAhead(end int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	if b.err = b.readEvents(); b.err != nil {
		return
	}
	b.ahead.setLimit(b.eventAt(end))
}

// eventAt returns the index of the first event whose payload begins at or after offset.
func (b *composedBody) eventAt(offset int64) int {
	if offset >= b.bundle.Body.Length {
		return b.list.len()
	}
	f, at, text := jsonFramer{mode: b.bundle.Content}, int64(0), []byte(nil)
	for i := range b.list.len() {
		e := b.list.eventAt(i)
		text = f.appendEvent(text[:0], &e)
		if at += int64(len(text)); at >= offset {
			return i
		}
		at += e.PayloadAt.Length
	}
	return b.list.len()
}

// Read fills p completely, unless the body ends.
func (b *composedBody) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.readEvents(); b.err != nil {
		return 0, b.err
	}
	if !b.begun || b.want < b.at {
		b.rewind()
	}
	for b.err == nil && n < len(p) && b.want < b.bundle.Body.Length {
		var m int
		m, b.err = b.readStep(p[n:])
		n += m
		b.want += int64(m)
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// readStep reads some bytes at b.want, or moves closer to b.want without reading any.
func (b *composedBody) readStep(p []byte) (int, error) {
	skip := b.want - b.at
	switch {
	case len(b.text) > 0 && skip > 0:
		b.consumeText(min(skip, int64(len(b.text))))
		return 0, nil
	case len(b.text) > 0:
		n := copy(p, b.text)
		b.consumeText(int64(n))
		return n, nil
	case b.payload == nil:
		return 0, b.composeText()
	case b.left == 0:
		b.payload = nil
		return 0, nil
	case skip >= b.left:
		b.at += b.left
		b.payload = nil
		if skip-b.left < maxSkip {
			return 0, nil // reading the bytes in between is cheaper than opening the object again
		}
		return 0, b.payloads.close()
	case b.payloads.of == nil:
		return 0, b.beginPayload()
	case skip > 0: // start at the beginning of the payload, because the checksum covers all of it
		_, err := b.readPayload(p[:min(skip, int64(len(p)))])
		return 0, err
	}
	return b.readPayload(p)
}

func (b *composedBody) consumeText(n int64) {
	b.text = b.text[n:]
	b.at += n
}

func (b *composedBody) beginPayload() error {
	if b.payloads.source == nil {
		opened, err := b.ahead.openSpan(b.next - 1)
		if err != nil {
			return err
		}
		b.payloads.setSpan(opened)
	}
	return b.payloads.beginPayload(b.payload)
}

func (b *composedBody) readPayload(p []byte) (int, error) {
	n, err := b.payloads.read(p)
	b.at += int64(n)
	b.left -= int64(n)
	return n, err
}

// composeText composes the text in front of the next payload, or a part of this text.
func (b *composedBody) composeText() error {
	const enough = 32 << 10
	text := b.buffer[:0]
	for len(text) < enough && b.payload == nil && b.next < b.list.len() {
		if err := b.payloads.closeBefore(b.next); err != nil {
			return err
		}
		b.current = b.list.eventAt(b.next)
		b.next++
		text = b.frame.appendEvent(text, &b.current)
		if !b.current.PayloadAt.IsZero() {
			b.payload, b.left = &b.current, b.current.PayloadAt.Length
			b.payloads.of = nil
		}
	}
	return b.setText(text)
}

// setText sets the text that Read returns next. An empty text ends the body.
func (b *composedBody) setText(text []byte) error {
	length := b.bundle.Body.Length
	ended := len(text) == 0
	if ended {
		if err := b.payloads.close(); err != nil {
			return err
		}
		text = b.frame.appendEnd(text)
	}
	end := b.at + int64(len(text))
	if b.payload != nil {
		end += b.left
	}
	if end > length || ended && end != length {
		return domain.Errorf(domain.Damaged, "bundle %s: its body no longer has the %d bytes that it had when it was opened", b.bundle.ID, length)
	}
	b.text, b.buffer = text, text
	return nil
}

// readEvents reads the events of the bundle into memory, unless it has done so already.
func (b *composedBody) readEvents() error {
	if b.list != nil {
		return nil
	}
	list, err := listEvents(b.events)
	if err != nil {
		return err
	}
	if err := isWhole(b.bundle, list.len()); err != nil {
		return err
	}
	b.takeEvents(list)
	return nil
}

func (b *composedBody) takeEvents(list *eventList) {
	b.list = list
	b.ahead.list = list
	b.ahead.setLimit(list.len())
}

// rewind moves back to the beginning of the body.
func (b *composedBody) rewind() {
	b.err = b.payloads.close()
	b.begun = true
	b.at, b.text, b.next, b.payload = 0, nil, 0, nil
	b.frame = jsonFramer{mode: b.bundle.Content}
}

// Err implements Body.
func (b *composedBody) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Close releases the resources of the body. It waits until running reads have returned.
func (b *composedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.payloads.close()
	b.ahead.close()
	if b.err == nil {
		b.err = errClosed
	}
	return err
}

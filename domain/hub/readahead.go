package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	maxAheadOpens = 512 // limit for the spans that all bodies of a hub read ahead at the same time
	maxBodyOpens  = 128 // limit for the spans that one body has read ahead

	// maxAheadSpan is the length up to which spans are read ahead. A longer span is opened
	// when the body reaches it, and is streamed.
	maxAheadSpan = 128 << 10

	// Limits for the bytes of payloads that a body reads ahead. A body may always read minAhead. With
	// the permission of GrowMemory the limit is fewAhead, or manyAhead if the bundle has more than
	// ManyEvents events.
	minAhead  = 32 << 10
	fewAhead  = 256 << 10
	manyAhead = 1 << 20
)

// A readAhead opens the payloads of a body in order. It reads short spans into memory before
// they are needed, several at the same time: events that were saved one by one are in separate
// objects, and opening an object takes as long as reading a hundred payloads.
//
// Opening a span begins the next reads. They run while the client receives the bytes that were
// read before. A readAhead is not safe for concurrent use.
type readAhead struct {
	parent  context.Context //nolint:containedctx // of the body
	content repository.Content
	opens   chan struct{}      // Hub.opens
	grow    func(n int64) bool // PeekedBundle.GrowMemory
	missing func(ctx context.Context, object string)
	maxRoom int64
	list    *eventList

	ctx     context.Context //nolint:containedctx // of the reads that are under way
	cancel  context.CancelFunc
	running sync.WaitGroup

	queue []*earlyRead // spans that are read ahead, in the order of their events
	next  int          // index of the first event after the spans in queue
	end   int          // events from here on are not read ahead
	room  int64        // limit for the bytes in the queue and the open span
	held  int64        // bytes in the queue and the open span
	taken int64        // bytes of the open span
}

// An openSpan is a span with the reader of its payloads.
type openSpan struct {
	payloadSpan
	source io.ReadCloser
}

func newReadAhead(ctx context.Context, content repository.Content, opens chan struct{}) *readAhead {
	a := &readAhead{parent: ctx, content: content, opens: opens, room: minAhead, maxRoom: fewAhead}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// setLimit stops reading ahead at the event with index end.
func (a *readAhead) setLimit(end int) { a.end = end }

// openSpan opens the span that begins with event i, and begins to read the spans after it. The
// previous span must be closed. If the reader of an object panics, so does openSpan.
func (a *readAhead) openSpan(i int) (openSpan, error) {
	if len(a.queue) > 0 && a.queue[0].from != i {
		a.cancelReads()
	}
	if len(a.queue) == 0 {
		a.next = i
	}
	if i >= a.end { // the caller reads past its limit
		a.end = a.list.len()
	}
	a.held -= a.taken
	a.taken = 0
	a.beginReads()
	if len(a.queue) == 0 {
		return a.streamSpan(i)
	}
	r := a.queue[0]
	a.queue = a.queue[1:]
	a.taken = r.Length
	<-r.done
	if r.panicked != nil {
		panic(r.panicked) // the caller gets the panic, as it would without reading ahead
	}
	return a.checkOpened(r.payloadSpan, r, r.failed)
}

// streamSpan opens the span that begins with event i without reading it into memory.
func (a *readAhead) streamSpan(i int) (openSpan, error) {
	s, _ := a.list.payloadsFrom(i, a.end)
	a.next = s.to
	source, err := a.content.Open(a.parent, s.Section)
	return a.checkOpened(s, source, err)
}

// beginReads begins to read the next spans until a limit is reached.
func (a *readAhead) beginReads() {
	for len(a.queue) < maxBodyOpens {
		s, found := a.list.payloadsFrom(a.next, a.end)
		if !found || s.Length <= 0 || s.Length > maxAheadSpan || !a.hasRoom(s.Length) {
			return
		}
		select {
		case a.opens <- struct{}{}:
		default:
			return
		}
		r := &earlyRead{payloadSpan: s, done: make(chan struct{})}
		a.queue = append(a.queue, r)
		a.next = s.to
		a.held += s.Length
		a.running.Go(func() {
			defer close(r.done)
			defer func() {
				r.panicked = recover()
				<-a.opens
			}()
			r.readSpan(a.ctx, a.content)
		})
	}
}

// hasRoom reports whether n more bytes may be held. If necessary, it asks for more memory.
func (a *readAhead) hasRoom(n int64) bool {
	for a.held+n > a.room {
		if a.room >= a.maxRoom || a.grow != nil && !a.grow(a.room) {
			return false
		}
		a.room *= 2
	}
	return true
}

// cancelReads cancels the reads that are under way, and discards the spans that were read.
func (a *readAhead) cancelReads() {
	a.close()
	a.ctx, a.cancel = context.WithCancel(a.parent)
	a.queue, a.held, a.taken = nil, 0, 0
}

// close cancels the reads that are under way, and waits until they have ended.
func (a *readAhead) close() {
	a.cancel()
	a.running.Wait()
}

// checkOpened returns s with its reader, or the error of opening it.
func (a *readAhead) checkOpened(s payloadSpan, source io.ReadCloser, err error) (openSpan, error) {
	if domain.KindOf(err) == domain.NotFound { // a bundle refers to the object, so it has to exist
		if a.missing != nil {
			a.missing(a.parent, s.Object)
		}
		err = domain.Errorf(domain.Damaged, "payloads are missing: %w", err)
	}
	if err != nil {
		last := s.to - 1
		for a.list.payloadAt(last).IsZero() {
			last--
		}
		return openSpan{}, fmt.Errorf("open the payloads of events %s to %s: %w", a.list.listedAt(s.from).id, a.list.listedAt(last).id, err)
	}
	return openSpan{s, source}, nil
}

// An earlyRead is a span that is read into memory; done is closed when the read has ended. Read
// returns the bytes before a failure of the object's reader, and then the error of that reader.
type earlyRead struct {
	payloadSpan
	done chan struct{}

	bytes.Reader
	failed   error // error of Open
	readErr  error // the error after the bytes; nil: EOF
	closeErr error
	panicked any // value with which the reader of the object has panicked
}

// readSpan reads the span into memory.
func (r *earlyRead) readSpan(ctx context.Context, content repository.Content) {
	source, err := content.Open(ctx, r.Section)
	if err != nil {
		r.failed = err
		return
	}
	data := make([]byte, r.Length)
	n, err := io.ReadFull(source, data)
	r.Reset(data[:n])
	if !isEOF(err) && !errors.Is(err, io.ErrUnexpectedEOF) {
		r.readErr = err
	}
	r.closeErr = source.Close()
}

// Read implements io.Reader.
func (r *earlyRead) Read(p []byte) (int, error) {
	if r.Len() == 0 && r.readErr != nil {
		return 0, r.readErr
	}
	return r.Reader.Read(p)
}

// Close implements io.Closer.
func (r *earlyRead) Close() error { return r.closeErr }

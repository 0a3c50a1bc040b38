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
	maxAheadOpens = 512 // maximum number of spans that all bodies of a hub read ahead at the same time
	maxBodyOpens  = 128 // maximum number of spans that one body reads ahead

	// maxAheadSpan is the maximum length of a span that is read ahead. A longer span is opened when the body reaches
	// it, and is streamed.
	maxAheadSpan = 128 << 10

	// Limits for the bytes that a body reads ahead. minAhead is always allowed. If GrowMemory permits, the limit is
	// fewAhead, or manyAhead for a bundle with more than ManyEvents events.
	minAhead  = 32 << 10
	fewAhead  = 256 << 10
	manyAhead = 1 << 20
)

// A readAhead opens the payloads of a body in order. It reads several short spans into memory at the same time, before
// they are needed. This saves time, because events that were saved one by one are in separate objects, and opening an
// object takes as long as reading a hundred payloads.
//
// Opening a span starts the next reads, which run while the client receives earlier bytes. A readAhead is not safe for
// concurrent use.
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

	queue []*earlyRead // spans that are read ahead, in event order
	next  int          // index of the first event that is not in queue
	end   int          // index of the first event that must not be read ahead
	room  int64        // maximum bytes in queue and in the open span
	held  int64        // current bytes in queue and in the open span
	taken int64        // current bytes in the open span
}

// An openSpan is a payloadSpan with a reader for its payloads.
type openSpan struct {
	payloadSpan
	source io.ReadCloser
}

func newReadAhead(ctx context.Context, content repository.Content, opens chan struct{}) *readAhead {
	a := &readAhead{parent: ctx, content: content, opens: opens, room: minAhead, maxRoom: fewAhead}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// setLimit sets the index of the first event that must not be read ahead.
func (a *readAhead) setLimit(end int) { a.end = end }

// openSpan opens the span that begins at event i, and starts reading the next spans. The last span must be closed. If
// the reader of an object panicked, openSpan panics, too.
func (a *readAhead) openSpan(i int) (openSpan, error) {
	if len(a.queue) > 0 && a.queue[0].from != i {
		a.cancelReads()
	}
	if len(a.queue) == 0 {
		a.next = i
	}
	if i >= a.end { // the caller reads beyond its own limit
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
		panic(r.panicked) // panic here, as the caller's own read would have done
	}
	return a.checkOpened(r.payloadSpan, r, r.failed)
}

// streamSpan opens the span that begins at event i, but does not read it into memory.
func (a *readAhead) streamSpan(i int) (openSpan, error) {
	s, _ := a.list.payloadsFrom(i, a.end)
	a.next = s.to
	source, err := a.content.Open(a.parent, s.Section)
	return a.checkOpened(s, source, err)
}

// beginReads starts reading further spans until a limit is reached.
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

// hasRoom reports whether the body may retain n more bytes. If needed, it calls GrowMemory.
func (a *readAhead) hasRoom(n int64) bool {
	for a.held+n > a.room {
		if a.room >= a.maxRoom || a.grow != nil && !a.grow(a.room) {
			return false
		}
		a.room *= 2
	}
	return true
}

// cancelReads cancels running reads and discards the spans that were read.
func (a *readAhead) cancelReads() {
	a.close()
	a.ctx, a.cancel = context.WithCancel(a.parent)
	a.queue, a.held, a.taken = nil, 0, 0
}

// close cancels running reads and waits until they have ended.
func (a *readAhead) close() {
	a.cancel()
	a.running.Wait()
}

// checkOpened returns s with its reader, or the error of opening the object.
func (a *readAhead) checkOpened(s payloadSpan, source io.ReadCloser, err error) (openSpan, error) {
	if domain.KindOf(err) == domain.NotFound { // the object must exist, because a bundle refers to it
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

// An earlyRead reads a span into memory; done is closed when that has ended. If the reader of the object failed, Read
// returns the bytes before the failure and then the error.
type earlyRead struct {
	payloadSpan
	done chan struct{}

	bytes.Reader
	failed   error // error of Open
	readErr  error // error that follows the bytes; nil means EOF
	closeErr error
	panicked any // value with which the object's reader panicked
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

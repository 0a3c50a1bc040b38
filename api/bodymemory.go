package api

import (
	"context"
	"io"
	"net/http"
)

const (
	// smallBody is the size limit, in bytes, for bodies that take memory from a separate pool. They
	// thus never wait for large bodies.
	smallBody = 64 * kilobyte

	// requestMemory is the memory of a request without its body, in bytes.
	requestMemory = 16 * kilobyte

	// A body of unknown length acquires memory in these steps as it arrives.
	smallStep = 16 * kilobyte
	largeStep = 64 * kilobyte
)

// A pooledBody is a request body whose memory is acquired from a pool.
type pooledBody struct {
	body  io.Reader
	ctx   context.Context //nolint:containedctx // a Reader has nowhere else to get it from
	pace  *pace
	owner string
	large *memoryPool
	hold  *memoryHold
	read  int64
}

// openBody acquires the memory for a request with a body, or fails with Busy. If the length of the
// body is known, it acquires all memory before the body is read: requests that hold memory while
// they wait for more would block each other. The caller must close the body after its events were
// stored or refused.
func (s *Server) openBody(r *http.Request, body io.Reader) (*pooledBody, error) {
	b := &pooledBody{body: body, ctx: r.Context(), pace: paceOf(r.Context()), owner: s.addressOf(r), large: s.largeBodies}
	if r.ContentLength <= smallBody {
		b.usePool(s.smallBodies)
	} else {
		b.usePool(s.largeBodies)
	}
	if err := b.grow(max(0, r.ContentLength)); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// Read implements io.Reader. It acquires memory for the bytes that it has read. If memory is not
// available in time, it fails with Busy.
func (b *pooledBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p[:min(len(p), largeStep)])
	b.read += int64(n)
	if err := b.grow(b.read); err != nil {
		return 0, err
	}
	return n, err
}

// grow extends the reservation to a body of n bytes.
func (b *pooledBody) grow(n int64) error {
	if n <= smallBody && b.hold.pool != b.large {
		return b.acquire(requestMemory + roundUp(n, smallStep))
	}
	if b.hold.pool != b.large {
		small := b.hold
		defer small.close()
		b.usePool(b.large)
	}
	return b.acquire(roundUp(n, largeStep))
}

// usePool opens a hold in pool. The body acquires all its memory with this hold.
func (b *pooledBody) usePool(pool *memoryPool) {
	b.hold = pool.open(b.owner, b.pace.interruptRead)
	b.pace.hold = b.hold
}

// acquire extends the reservation to at least n bytes.
func (b *pooledBody) acquire(n int64) error {
	if more := n - b.hold.bytes; more > 0 {
		if err := b.hold.acquire(b.ctx, more); err != nil {
			return &problemError{problem: busy, close: true, cause: err}
		}
	}
	return nil
}

func (b *pooledBody) close() {
	b.pace.hold = nil
	b.hold.close()
}

func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }

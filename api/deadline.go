package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// errDeadline is the cause of a context that ends because its request has used up its time.
var errDeadline = errors.New("the request has reached its deadline")

const (
	// streamFactor is the maximum duration of a request whose client keeps reading the body, as a
	// multiple of the deadline.
	streamFactor = 20

	// grace is the time after the deadline in which the problem can be sent to the client.
	grace = 5 * time.Second
)

// deadline limits the time of a request: for reading its body, for the work, and for writing the
// response. Writing may take longer while the client keeps reading.
//
// The context has no fixed deadline, because a Peek may still read the store while its body is
// streamed. When the time is used up, the context ends with the cause errDeadline.
func (s *Server) deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		now := time.Now()
		p := &pace{
			ResponseWriter: w, conn: http.NewResponseController(w), span: s.opts.Deadline, last: now.Add(streamFactor * s.opts.Deadline),
			out: newThroughput(s.opts.Limits.MinRate, s.opts.Deadline), slow: s.metrics.slowClients,
		}
		p.timer = time.AfterFunc(p.span, func() { cancel(errDeadline) })
		defer p.timer.Stop()
		p.writeBefore(now.Add(p.span + grace)) // for a response without a body; each Write sets a new deadline
		r = r.WithContext(context.WithValue(ctx, paceKey{}, p))
		if r.ContentLength != 0 {
			r.Body = newPacedBody(r.Body, p, s.opts.Limits.MinRate, now.Add(p.span))
		}
		next.ServeHTTP(p, r)
	})
}

// A pace extends the deadline of a request while its client reads the response.
type pace struct {
	http.ResponseWriter
	conn  *http.ResponseController
	span  time.Duration
	timer *time.Timer
	last  time.Time // latest possible deadline for writing
	out   throughput
	hold  *memoryHold            // memory of the request while its client sends or reads; nil if none exists
	slow  *prometheus.CounterVec // counts disconnected slow clients by action: send or read
}

// errSlowReader means that the client reads the response more slowly than the minimum rate.
var errSlowReader = errors.New("the client takes the answer too slowly")

type paceKey struct{}

// paceOf returns the pace of a request.
func paceOf(ctx context.Context) *pace {
	p, _ := ctx.Value(paceKey{}).(*pace)
	return p
}

// extendDeadline extends the deadline by the time that a request will wait before its work starts.
func (p *pace) extendDeadline(wait time.Duration) {
	p.last = p.last.Add(wait)
	p.timer.Reset(wait + p.span)
	p.writeBefore(time.Now().Add(wait + p.span + grace))
}

// removeLimit removes the limit on the total time. Each part of the response still has a deadline.
func (p *pace) removeLimit() { p.last = time.Now().AddDate(100, 0, 0) }

// writeStep is the maximum number of bytes in one write to the connection. Reading a step takes
// writeStep/MinRate at the minimum rate.
const writeStep = 16 * kilobyte

func (p *pace) Write(b []byte) (n int, _ error) {
	for {
		step, err := p.write(b[:min(len(b), writeStep)])
		n, b = n+step, b[step:]
		if err != nil || len(b) == 0 {
			return n, err
		}
	}
}

func (p *pace) write(b []byte) (n int, err error) {
	start := time.Now()
	p.writeBefore(p.out.deadline(start, p.nextDeadline()))
	if p.hold.beginTransfer() {
		n, err = p.ResponseWriter.Write(b)
	} else {
		err = os.ErrDeadlineExceeded
	}
	p.hold.endTransfer(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.slow.WithLabelValues("read").Inc()
		return n, errors.Join(errSlowReader, err)
	}
	p.out.add(n, time.Since(start))
	if err == nil {
		p.timer.Reset(time.Until(p.nextDeadline()))
	}
	return n, err
}

// interruptWrite makes a Write that waits for the client fail.
func (p *pace) interruptWrite() { p.writeBefore(time.Unix(1, 0)) }

// nextDeadline returns the next deadline of a client that has just read a part of the response.
func (p *pace) nextDeadline() time.Time {
	at := time.Now().Add(p.span)
	if at.After(p.last) {
		return p.last
	}
	return at
}

func (p *pace) writeBefore(at time.Time) {
	_ = p.conn.SetWriteDeadline(at) // fails if the writer has no connection, as in some tests
}

// Unwrap lets http.ResponseController reach the connection.
func (p *pace) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// senderWindows is the number of windows in one deadline. A client that sends nothing during one
// window is disconnected.
const senderWindows = 3

// A pacedBody is a request body that the client must send at a minimum rate.
type pacedBody struct {
	io.ReadCloser
	pace  *pace
	in    throughput
	last  time.Time // latest possible deadline for reading
	ended bool      // the body has ended or failed, so it is no longer read
}

func newPacedBody(body io.ReadCloser, p *pace, rate int64, last time.Time) *pacedBody {
	b := &pacedBody{ReadCloser: body, pace: p, in: newThroughput(rate, p.span/senderWindows), last: last}
	p.readBefore(last)
	return b
}

// Read implements io.Reader. After the end of the body it sets no further deadline, because
// net/http continues to read without one, to notice a disconnect.
func (b *pacedBody) Read(to []byte) (n int, err error) {
	start := time.Now()
	if !b.ended {
		b.pace.readBefore(b.in.deadline(start, b.last))
	}
	if b.pace.hold.beginTransfer() {
		n, err = b.ReadCloser.Read(to)
	} else {
		err = os.ErrDeadlineExceeded
	}
	wasCut := !b.pace.hold.endTransfer(n)
	b.in.add(n, time.Since(start))
	if err != nil {
		b.ended = true
	}
	if wasCut && errors.Is(err, io.EOF) {
		b.pace.readBefore(time.Time{}) // the read was interrupted, but the body is complete
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.pace.slow.WithLabelValues("send").Inc()
	}
	return n, err
}

func (p *pace) readBefore(at time.Time) {
	_ = p.conn.SetReadDeadline(at) // fails if the writer has no connection, as in some tests
}

// interruptRead makes a Read that waits for the client fail.
func (p *pace) interruptRead() { p.readBefore(time.Unix(1, 0)) }

package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// errDeadline is the cause of a context whose request has run out of time.
var errDeadline = errors.New("the request has reached its deadline")

const (
	// streamFactor is how many times its deadline a request may last while its
	// client keeps taking the body.
	streamFactor = 20

	// grace is what is left after the deadline to say so to the client.
	grace = 5 * time.Second
)

// deadline bounds the time of a request: the reading of its body, the work, and
// the writing of the answer, which may take longer as long as it goes on.
//
// The context has no fixed deadline, because the work of a Peek goes on while
// its body is streamed. Its cause is errDeadline when time is up.
func (s *Server) deadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		p := &pace{ResponseWriter: w, conn: http.NewResponseController(w), span: s.opts.Deadline}
		now := time.Now()
		p.last = now.Add(streamFactor * p.span)
		p.timer = time.AfterFunc(p.span, func() { cancel(errDeadline) })
		defer p.timer.Stop()
		p.writeBefore(now.Add(p.span + grace)) // for an answer without a body; a Write sets its own

		if r.ContentLength != 0 {
			// Once the body has come to its end, net/http reads on without this
			// deadline, to notice that the client goes away.
			_ = p.conn.SetReadDeadline(now.Add(p.span)) // not every writer has a connection
		}
		next.ServeHTTP(p, r.WithContext(context.WithValue(ctx, paceKey{}, p)))
	})
}

// A pace moves the deadline of a request as its client takes the answer.
type pace struct {
	http.ResponseWriter
	conn  *http.ResponseController
	span  time.Duration
	timer *time.Timer
	last  time.Time // the deadline never moves beyond it
}

type paceKey struct{}

// paceOf returns the pace of a request.
func paceOf(ctx context.Context) *pace {
	p, _ := ctx.Value(paceKey{}).(*pace)
	return p
}

// allow moves the deadline by what a request will wait before its work begins.
func (p *pace) allow(wait time.Duration) {
	p.last = p.last.Add(wait)
	p.timer.Reset(wait + p.span)
	p.writeBefore(time.Now().Add(wait + p.span + grace))
}

// endless lets a request last as long as its client takes something every now and
// then.
func (p *pace) endless() { p.last = time.Now().AddDate(100, 0, 0) }

func (p *pace) Write(b []byte) (int, error) {
	p.writeBefore(p.next())
	n, err := p.ResponseWriter.Write(b)
	if err == nil {
		p.timer.Reset(time.Until(p.next()))
	}
	return n, err
}

// next is the deadline if the client takes something now.
func (p *pace) next() time.Time {
	at := time.Now().Add(p.span)
	if at.After(p.last) {
		return p.last
	}
	return at
}

func (p *pace) writeBefore(at time.Time) {
	_ = p.conn.SetWriteDeadline(at) // not every writer has a connection
}

// Unwrap lets http.ResponseController reach the connection.
func (p *pace) Unwrap() http.ResponseWriter { return p.ResponseWriter }

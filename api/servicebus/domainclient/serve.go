package domainclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// Serve replies to the hub's requests with the content that h returns. It handles several requests
// concurrently, up to Options.RequestsAtOnce. When ctx ends, Serve cancels the requests in progress
// and returns nil; another process that serves the domain receives the unfinished requests. Serve
// fails if the queues do not exist or the client has no right to use them.
func (c *Client) Serve(ctx context.Context, h Handler) (err error) {
	if c.o.Exchange == nil {
		return errNoExchange
	}
	if c.o.Queues.Request == "" || c.o.Queues.Reply == "" {
		return errNoQueues
	}
	requests, err := c.o.Connect()
	if err != nil {
		return err
	}
	defer closeClient(ctx, requests, &err)
	s := &serveLoop{c: c, handler: h, requests: requests, replies: newSenders(&c.o, c.o.Queues.Reply)}
	defer func() {
		closing, cancel := closingContext(ctx)
		defer cancel()
		_ = s.replies.close(closing) // all replies were sent or have failed, so an error from close is harmless
	}()
	g, working := errgroup.WithContext(ctx)
	for range c.o.RequestsAtOnce {
		g.Go(func() error { return s.answerRequests(working) })
	}
	return g.Wait()
}

// errNoQueues reports a client without Options.Queues and Options.Origin.
var errNoQueues = errors.New("domainclient: no Options.Queues; set Options.Origin, or name them")

// closeClient closes a client with a time limit. If *err is nil and ctx has not ended, it sets *err
// to the error from closing.
func closeClient(ctx context.Context, client *azservicebus.Client, err *error) {
	closing, cancel := closingContext(ctx)
	defer cancel()
	if closeErr := client.Close(closing); *err == nil && ctx.Err() == nil {
		*err = closeErr
	}
}

// A serveLoop is the state of one call to Serve.
type serveLoop struct {
	c        *Client
	handler  Handler
	requests *azservicebus.Client
	replies  *senders

	content singleflight.Group // keyed by bundle, so that concurrent requests for one bundle share the work
}

// acceptFor is the time limit for accepting a session, after which the worker tries again.
const acceptFor = time.Minute

// answerRequests replies to one request after another.
func (s *serveLoop) answerRequests(ctx context.Context) error {
	p := s.c.newPatience()
	for ctx.Err() == nil {
		err := s.answerNextSession(ctx)
		switch {
		case err == nil:
			p = s.c.newPatience()
			continue
		case ctx.Err() == nil && p.endsWith(err):
			return fmt.Errorf("serve %s: %w", s.c.o.Queues.Request, err)
		}
		if p.wait(ctx) {
			s.c.o.Logger.Warn("trying again", "doing", "serve "+s.c.o.Queues.Request, "error", err)
		}
	}
	return nil
}

// answerNextSession waits for a session, and replies to its requests. The hub uses a new session
// for each attempt.
func (s *serveLoop) answerNextSession(ctx context.Context) error {
	accepting, cancel := context.WithTimeout(ctx, acceptFor)
	defer cancel()
	session, err := s.requests.AcceptNextSessionForQueue(accepting, s.c.o.Queues.Request, nil)
	if busclient.ReasonOf(err) == busclient.Timeout || err != nil && accepting.Err() != nil {
		return nil // no request arrived within acceptFor
	}
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := closingContext(ctx)
		defer cancel()
		_ = session.Close(closing) // if closing fails, the lock of the session expires
	}()
	receiving, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	m, err := receiveNext(receiving, session)
	if busclient.IsPanic(err) {
		s.c.o.Logger.Error("a request makes the client panic; its session is held back until it has expired", "session", session.SessionID(), "error", err)
		p := s.c.newPatience()
		p.next = longestPause
		p.wait(ctx) // during the pause the session is held, so no other process receives the request
		return nil
	}
	switch {
	case m != nil:
		return s.answerRequest(ctx, session, m)
	case receiving.Err() != nil:
		return nil // the request has expired
	case err == nil:
		return errors.New("the session ended before its request came")
	}
	return err
}

// answerRequest sends the reply to a request, and then completes the request.
func (s *serveLoop) answerRequest(ctx context.Context, session *azservicebus.SessionReceiver, m *azservicebus.ReceivedMessage) error {
	began := s.c.o.Now()
	r, err := s.c.parseRequest(m)
	if err != nil {
		return s.c.deadLetter(ctx, session, m, err)
	}
	holding, release := s.c.keepLock(ctx, session.LockedUntil(), func(ctx context.Context) error { return session.RenewSessionLock(ctx, nil) })
	defer release()
	a, ok := s.makeContent(holding, r, s.c.timeLeft(m))
	if !ok {
		return nil // another process receives the request and sends the reply
	}
	a.Request, a.Took = r, s.c.o.Now().Sub(began)
	settling, cancel := closingContext(ctx)
	defer cancel()
	if err := s.sendReply(settling, &a); err != nil {
		return err
	}
	if s.c.o.Answered != nil {
		s.c.o.Answered(a)
	}
	return session.CompleteMessage(settling, m, nil) // without completion, the hub would get a second reply, which is harmless
}

// makeContent produces the content of a bundle and writes it to the exchange. It returns false if
// ctx ended first. Concurrent requests for one bundle share the work: one request calls the
// handler, and all get the content. If that request expires first, another request calls the
// handler again.
func (s *serveLoop) makeContent(ctx context.Context, r *Request, left time.Duration) (Answer, bool) {
	key := fmt.Sprintf("%q %q %s %g", r.IdempotencyID, r.List, r.Format, r.Version)
	inTime, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	for ctx.Err() == nil {
		shared, late, _ := s.content.Do(key, func() (any, error) {
			uri, size, err := s.produceContent(inTime, r)
			if err != nil && ctx.Err() != nil {
				return nil, ctx.Err() // the request that called the handler has ended
			}
			a := Answer{URI: uri, Bytes: size, Failure: s.newFailure(inTime, r, err)}
			if a.Failure != nil {
				return a, inTime.Err()
			}
			return a, nil
		})
		if a, ok := shared.(Answer); ok && (late == nil || ctx.Err() == nil && inTime.Err() != nil) {
			return a, true
		}
	}
	return Answer{}, false
}

func (s *serveLoop) produceContent(ctx context.Context, r *Request) (uri string, size int64, err error) {
	var content io.Reader
	err = recoverPanic(func() (err error) {
		content, err = s.handler(ctx, r)
		return err
	})
	if closer, ok := content.(io.Closer); ok {
		defer func() { err = errors.Join(err, recoverPanic(closer.Close)) }()
	}
	switch {
	case err != nil:
		return "", 0, err
	case content == nil:
		return "", 0, errEmpty
	}
	return r.exchange.putContent(ctx, r.contentName(), mediaTypes[r.Format], content)
}

// newFailure converts err to the failure that is sent to the hub. It returns nil if err is nil.
func (s *serveLoop) newFailure(ctx context.Context, r *Request, err error) *Failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if ctx.Err() != nil {
		return &Failure{DatasetNotAvailable, "the content was not ready in time"}
	}
	if p, ok := errors.AsType[*panicError](err); ok {
		s.c.o.Logger.Error("the handler panicked", "idempotency_id", r.IdempotencyID, "error", p, "stack", string(p.stack))
		return &Failure{InternalError, "the program that makes the content panicked; its log says more"}
	}
	s.c.o.Logger.Error("the content could not be produced", "idempotency_id", r.IdempotencyID, "error", err)
	return &Failure{InternalError, err.Error()}
}

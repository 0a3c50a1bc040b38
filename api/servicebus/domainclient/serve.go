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

// Serve answers the hub's requests for content with what h returns, many
// concurrently. When ctx ends, it cancels the work in progress and returns nil;
// the unanswered requests stay for the next process that serves. It fails if
// the queues do not exist or it has no right to use them.
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
	s := &serving{c: c, make: h, requests: requests, replies: newSenders(&c.o, c.o.Queues.Reply)}
	defer func() {
		closing, cancel := closingContext(ctx)
		defer cancel()
		_ = s.replies.close(closing) // no reply is under way any longer
	}()
	g, working := errgroup.WithContext(ctx)
	for range c.o.RequestsAtOnce {
		g.Go(func() error { return s.answerRequests(working) })
	}
	return g.Wait()
}

// errNoQueues reports a client without the names of queues.
var errNoQueues = errors.New("domainclient: no Options.Queues; set Options.Origin, or name them")

// closeClient closes a client with a time limit. It returns the error of
// closing only if there was no other error and ctx has not ended.
func closeClient(ctx context.Context, client *azservicebus.Client, err *error) {
	closing, cancel := closingContext(ctx)
	defer cancel()
	if closeErr := client.Close(closing); *err == nil && ctx.Err() == nil {
		*err = closeErr
	}
}

// serving is one call of Serve.
type serving struct {
	c        *Client
	make     Handler
	requests *azservicebus.Client
	replies  *senders

	making singleflight.Group // by bundle: two attempts for one bundle share the work
}

// acceptFor is how long a worker waits for a session before it repeats the
// request.
const acceptFor = time.Minute

// answerRequests answers one request after another.
func (s *serving) answerRequests(ctx context.Context) error {
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

// answerNextSession waits for a session and answers its requests. Each session is one attempt
// of the hub.
func (s *serving) answerNextSession(ctx context.Context) error {
	accepting, cancel := context.WithTimeout(ctx, acceptFor)
	defer cancel()
	session, err := s.requests.AcceptNextSessionForQueue(accepting, s.c.o.Queues.Request, nil)
	if busclient.ReasonOf(err) == busclient.Timeout || err != nil && accepting.Err() != nil {
		return nil // no request came
	}
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := closingContext(ctx)
		defer cancel()
		_ = session.Close(closing) // the lock ends by itself if this fails
	}()
	receiving, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	m, err := receiveNext(receiving, session)
	if busclient.IsPanic(err) {
		s.c.o.Logger.Error("a request makes the client panic; its session is held back until it has expired", "session", session.SessionID(), "error", err)
		p := s.c.newPatience()
		p.next = longestPause
		p.wait(ctx) // while the session is open, so that no other process receives it
		return nil
	}
	switch {
	case m != nil:
		return s.answerRequest(ctx, session, m)
	case receiving.Err() != nil:
		return nil // it has expired
	case err == nil:
		return errors.New("the session ended before its request came")
	}
	return err
}

// answerRequest answers a request, and then completes it.
func (s *serving) answerRequest(ctx context.Context, session *azservicebus.SessionReceiver, m *azservicebus.ReceivedMessage) error {
	began := s.c.o.Now()
	r, err := s.c.parseRequest(m)
	if err != nil {
		return s.c.deadLetter(ctx, session, m, err)
	}
	holding, release := s.c.keepLock(ctx, session.LockedUntil(), func(ctx context.Context) error { return session.RenewSessionLock(ctx, nil) })
	defer release()
	a, ok := s.makeContent(holding, r, s.c.timeLeft(m))
	if !ok {
		return nil // the next process that receives the request answers it
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
	return session.CompleteMessage(settling, m, nil) // otherwise the hub would get a second answer, which is harmless
}

// makeContent makes the content of a bundle and writes it to the exchange. Two
// concurrent attempts for one bundle share the content that one of them makes;
// if that one runs out of time, the other continues within its own time. It
// returns false if ctx ended first.
func (s *serving) makeContent(ctx context.Context, r *Request, left time.Duration) (Answer, bool) {
	key := fmt.Sprintf("%q %q %s %g", r.IdempotencyID, r.List, r.Format, r.Version)
	inTime, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	for ctx.Err() == nil {
		shared, late, _ := s.making.Do(key, func() (any, error) {
			uri, size, err := s.makeAndPut(inTime, r)
			if err != nil && ctx.Err() != nil {
				return nil, ctx.Err() // the attempt has ended
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

func (s *serving) makeAndPut(ctx context.Context, r *Request) (uri string, size int64, err error) {
	var content io.Reader
	err = recoverPanic(func() (err error) {
		content, err = s.make(ctx, r)
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

// newFailure returns the failure that the hub gets for an error.
func (s *serving) newFailure(ctx context.Context, r *Request, err error) *Failure {
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
	s.c.o.Logger.Error("there is no content", "idempotency_id", r.IdempotencyID, "error", err)
	return &Failure{InternalError, err.Error()}
}

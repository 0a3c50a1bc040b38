package busclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"
)

// A sharedSender is a link to one queue, which may have several users. The
// mutex of the Connection guards its changing fields.
type sharedSender struct {
	*azservicebus.Sender
	queue   string
	opening *semaphore.Weighted // held by the caller that may open the link
	users   int
	lost    bool // the bus has ended the link
}

// WithSender calls f with a sender of the queue whose link is open. It returns the error of f,
// or why there is no such sender. A sender or client that failed permanently is replaced for
// the next call.
func (c *Connection) WithSender(ctx context.Context, queue string, f func(*azservicebus.Sender) error) error {
	client, err := c.Acquire()
	if err != nil {
		return err
	}
	defer c.Release(ctx, client)
	s, err := c.acquireSender(client, queue)
	if err == nil {
		defer func() { c.releaseSender(ctx, client, s, Classify(err).LinkEnded) }() // also if f panics
		err = s.open(ctx)                                                           // opened first, so that a failure of opening can be told from a failure of f
		if err == nil {
			err = f(s.Sender)
		}
	}
	if Classify(err).ReplaceClient && !c.opts.KeepClient {
		c.Replace(ctx, client)
	}
	return err
}

// acquireSender returns a sender for a queue: an unused one, a new one, or the
// one with the fewest users. It makes no call. Each needs one releaseSender.
func (c *Connection) acquireSender(client *Client, queue string) (*sharedSender, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s *sharedSender
	all := client.senders[queue]
	if len(all) > 0 {
		s = slices.MinFunc(all, func(a, b *sharedSender) int { return a.users - b.users })
	}
	if s == nil || s.users > 0 && len(all) < c.opts.SendersPerQueue {
		made, err := client.NewSender(queue, nil)
		if err != nil {
			return nil, err
		}
		s = &sharedSender{Sender: made, queue: queue, opening: semaphore.NewWeighted(1)}
		client.senders[queue] = append(all, s)
	}
	s.users++
	return s, nil
}

// releaseSender ends a use of s. If its link is lost, the next user gets another sender:
// the client would use a link that the bus has ended for ever, as the bus does when a
// queue is deleted, also when the queue exists again. The old sender is closed when it
// has no users: one that is closed while it opens a link leaves that behind. A sender of
// a retired client is closed with it.
func (c *Connection) releaseSender(ctx context.Context, client *Client, s *sharedSender, lost bool) {
	c.mu.Lock()
	s.users--
	if lost {
		s.lost = true
		client.senders[s.queue] = slices.DeleteFunc(client.senders[s.queue], func(other *sharedSender) bool { return other == s })
	}
	unused := s.lost && s.users == 0 && !client.retired
	c.mu.Unlock()
	if unused {
		_ = Outlast(ctx, CloseTimeout, s.Close) // the other end is gone
	}
}

// open opens the link of the sender if it is not open. One caller at a time does so. If an open
// fails inside the client, each caller that has waited for it opens a link in turn, and the
// client forgets every link except the last, with the goroutines that renew their tokens. Those
// callers also wait without a limit; here they return when ctx ends. If the link is open, open
// makes no call.
//
// A link that is lost during a send is opened again by the client, which makes sure that
// one caller does so.
func (s *sharedSender) open(ctx context.Context) error {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.opening.Release(1)
	_, err := s.NewMessageBatch(ctx, nil)
	return err
}

// A SendError reports that a message was not accepted, or that its outcome is
// not known.
type SendError struct {
	Uncertain bool // the bus may have accepted the message
	err       error
}

func (e *SendError) Error() string { return e.err.Error() }

func (e *SendError) Unwrap() error { return e.err }

// Send returns nil once the bus has accepted m, and a [SendError] otherwise. A connection or a
// link may have been lost since its last use, so Send makes a second attempt over another one.
func (c *Connection) Send(ctx context.Context, queue string, m *azservicebus.Message) error {
	ctx, cancel := context.WithTimeout(ctx, SendTimeout)
	defer cancel()
	retry, first := c.sendOnce(ctx, queue, m)
	if first == nil {
		return nil
	}
	if !retry || ctx.Err() != nil {
		return first
	}
	_, second := c.sendOnce(ctx, queue, m)
	switch {
	case second == nil:
		return nil
	case first.Uncertain: // the second attempt does not change that the first may have succeeded
		return first
	default:
		return second
	}
}

func (c *Connection) sendOnce(ctx context.Context, queue string, m *azservicebus.Message) (retry bool, _ *SendError) {
	sending := false
	err := c.WithSender(ctx, queue, func(s *azservicebus.Sender) error {
		sending = true
		return s.SendMessage(ctx, m, nil)
	})
	if err == nil {
		return false, nil
	}
	if _, notOpened := errors.AsType[*OpenError](err); notOpened {
		return false, &SendError{err: err}
	}
	failure := Classify(err)
	return failure.Retry, &SendError{
		Uncertain: sending && failure.Retry && !failure.RetryOnce, // otherwise the bus has refused it
		err:       fmt.Errorf("send to queue %s: %w", queue, failure),
	}
}

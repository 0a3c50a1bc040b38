package busclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"
)

// A sharedSender is a link to one queue, which several callers may use. The mutex of the Connection
// guards its mutable fields.
type sharedSender struct {
	*azservicebus.Sender
	queue   string
	opening *semaphore.Weighted // acquired by the caller that may open the link
	users   int
	lost    bool // the bus has ended the link
}

// WithSender calls f with a sender of the queue whose link is open. It returns the error of f, or
// the reason why no such sender is available. After a permanent failure of the sender or the
// client, the next call uses a new one.
func (c *Connection) WithSender(ctx context.Context, queue string, f func(*azservicebus.Sender) error) error {
	client, err := c.Acquire()
	if err != nil {
		return err
	}
	defer c.Release(ctx, client)
	s, err := c.acquireSender(client, queue)
	if err == nil {
		defer func() { c.releaseSender(ctx, client, s, Classify(err).LinkEnded) }() // deferred, so that the sender is released even if f panics
		err = s.open(ctx)                                                           // opened before f, so that a failure to open the link differs from a failure of f
		if err == nil {
			err = f(s.Sender)
		}
	}
	if Classify(err).ReplaceClient && !c.opts.KeepClient {
		c.Replace(ctx, client)
	}
	return err
}

// acquireSender returns a sender for a queue: an unused sender, a new one, or the one with the
// fewest users. It makes no call. The caller must call releaseSender once for each acquireSender.
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

// releaseSender ends a use of s. If the link of s is lost, the next user gets another sender. The
// bus ends a link when its queue is deleted, and the client would keep using the ended link even
// after the queue was created again. The old sender is closed when it has no users, because closing
// it while it opens a link would leave that link open. The sender of a retired client is closed
// together with the client.
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
		_ = Outlast(ctx, CloseTimeout, s.Close) // an error is harmless, because the bus has ended the link
	}
}

// open opens the link of the sender if it is not open. Only one caller at a time opens the link.
// Without this rule, if an open fails inside the client, each waiting caller opens a link in turn,
// and the client loses track of every link except the last, together with the goroutines that renew
// their tokens. The callers inside the client also wait without a limit; the callers of open return
// when ctx ends. If the link is open, open makes no call.
//
// If a link is lost during a send, the client opens it again, and ensures that only one caller does
// so.
func (s *sharedSender) open(ctx context.Context) error {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.opening.Release(1)
	_, err := s.NewMessageBatch(ctx, nil)
	return err
}

// A SendError reports that the bus did not accept a message, or that the outcome is unknown.
type SendError struct {
	Uncertain bool // the bus may have accepted the message
	err       error
}

func (e *SendError) Error() string { return e.err.Error() }

func (e *SendError) Unwrap() error { return e.err }

// Send returns nil once the bus has accepted m, and otherwise a [SendError]. The connection or the
// link may have been lost since its last use, so Send makes a second attempt over a new one.
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
	case first.Uncertain: // a failed second attempt does not prove that the first attempt failed
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
		Uncertain: sending && failure.Retry && !failure.RetryOnce, // for other failures, the bus has certainly not accepted the message
		err:       fmt.Errorf("send to queue %s: %w", queue, failure),
	}
}

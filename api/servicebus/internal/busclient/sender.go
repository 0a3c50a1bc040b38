package busclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"
)

// A sharedSender is a link to one queue that several callers use. Its mutable fields are guarded by
// the mutex of the Connection.
type sharedSender struct {
	*azservicebus.Sender
	queue   string
	opening *semaphore.Weighted // held by the caller that opens the link
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
		err = s.open(ctx)                                                           // the link is opened before f runs, so that a failure to open it differs from a failure of f
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
// fewest users. It does not open a link. Each call must be followed by one call of releaseSender.
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

// releaseSender ends a use of s. If the link of s is lost, the next user gets a new sender. For
// example, the bus ends a link when its queue is deleted, and Microsoft's client would use the
// ended link even after the queue was created again. The old sender is closed when it has no users,
// because closing it while it opens a link would leave that link open. The sender of a retired
// client is closed together with the client.
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
		_ = Outlast(ctx, CloseTimeout, s.Close) // the error is harmless, because the bus has already ended the link
	}
}

// open opens the link of the sender, unless it is open already. Only one caller at a time opens the
// link. Without this rule, each caller waiting inside Microsoft's client would open a link if the
// first attempt fails. The client would lose track of all links except the last, and leak the
// goroutines that renew their tokens. Callers of open also stop waiting when ctx ends, which the
// client does not support.
//
// If a link is lost during a send, the client opens it again itself, by one caller only.
func (s *sharedSender) open(ctx context.Context) error {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.opening.Release(1)
	_, err := s.NewMessageBatch(ctx, nil)
	return err
}

// A SendError means that the bus did not accept a message, or that the outcome is unknown.
type SendError struct {
	Uncertain bool // the bus may have accepted the message
	err       error
}

func (e *SendError) Error() string { return e.err.Error() }

func (e *SendError) Unwrap() error { return e.err }

// Send returns nil once the bus has accepted m, and otherwise a [SendError]. If the connection or
// the link was lost since its last use, Send makes a second attempt over a new one.
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
	case first.Uncertain: // even if the second attempt fails, the first attempt may have succeeded
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
		Uncertain: sending && failure.Retry && !failure.RetryOnce, // after any other failure, the bus has certainly not accepted the message
		err:       fmt.Errorf("send to queue %s: %w", queue, failure),
	}
}

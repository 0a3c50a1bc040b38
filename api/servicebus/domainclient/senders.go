package domainclient

import (
	"context"
	"errors"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// sendsAtOnce bounds what is sent at the same time to one queue.
const sendsAtOnce = 16

// senders are those to one queue. Each is used by one goroutine at a time: where two
// use a sender of Microsoft's client whose link is not open, both open it, and one
// of the links is forgotten with the goroutines that renew its token.
type senders struct {
	connect Connect
	queue   string
	free    chan struct{} // holds a token for each that is in use

	mu     sync.Mutex
	closed bool
	client *azservicebus.Client
	idle   []*azservicebus.Sender // the last one was used last
}

// ErrClosed reports a Send after Close.
var ErrClosed = errors.New("domainclient: the client is closed")

func newSenders(connect Connect, queue string) *senders {
	return &senders{connect: connect, queue: queue, free: make(chan struct{}, sendsAtOnce)}
}

// with calls f with a sender that nobody else uses meanwhile.
func (s *senders) with(ctx context.Context, f func(*azservicebus.Sender) error) error {
	select {
	case s.free <- struct{}{}:
		defer func() { <-s.free }()
	case <-ctx.Done():
		return ctx.Err()
	}
	sender, err := s.take()
	if err != nil {
		return err
	}
	err = f(sender)
	if lostLink(err) {
		// Microsoft's client would for ever use a link that the bus has ended for
		// good, as it does when a queue is deleted, also when the queue is there again.
		closing, cancel := after(ctx)
		defer cancel()
		_ = sender.Close(closing)
		return err
	}
	s.give(sender)
	return err
}

func (s *senders) take() (*azservicebus.Sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if n := len(s.idle); n > 0 {
		sender := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return sender, nil
	}
	if s.client == nil {
		client, err := s.connect()
		if err != nil {
			return nil, err
		}
		s.client = client
	}
	return s.client.NewSender(s.queue, nil)
}

func (s *senders) give(sender *azservicebus.Sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, sender)
}

// close ends the connection, if there is one. What is being sent fails.
func (s *senders) close(ctx context.Context) error {
	s.mu.Lock()
	client := s.client
	s.closed, s.client = true, nil
	s.mu.Unlock()
	if client == nil {
		return nil
	}
	return client.Close(ctx)
}

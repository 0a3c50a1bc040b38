package domainclient

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// maxSends is the maximum number of concurrent sends to one queue.
const maxSends = 16

// senders contains the links to one queue. Each concurrent send uses a separate link.
type senders struct {
	connection *busclient.Connection
	queue      string
	slots      chan struct{} // holds a token for each send in flight
}

// ErrClosed reports a Send after Close.
var ErrClosed = errors.New("domainclient: the client is closed")

func newSenders(o *Options, queue string) *senders {
	return &senders{
		connection: busclient.NewConnection(busclient.Options{Open: o.Connect, KeepClient: true, SendersPerQueue: maxSends, Logger: o.Logger}),
		queue:      queue,
		slots:      make(chan struct{}, maxSends),
	}
}

// withSender calls f with a sender that no other caller uses at the same time.
func (s *senders) withSender(ctx context.Context, f func(*azservicebus.Sender) error) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := s.connection.WithSender(ctx, s.queue, f)
	if errors.Is(err, busclient.ErrClosed) {
		return ErrClosed
	}
	return err
}

// close closes the connection if it is open. Sends in flight fail.
func (s *senders) close(ctx context.Context) error { return s.connection.Close(ctx) }

package domainclient

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/errgroup"
)

// Send announces events to the hub, and returns how many events the bus has certainly accepted. It
// sends events in batches, each of which the bus stores as a whole or rejects. The order is kept for the
// events of each recipient, but not between recipients. If the outcome of a batch is unknown, Send
// sends the batch again with the same message ids, until ctx ends.
//
// After an error, the caller may send all events again: the hub stores each event once, and the
// order is kept.
func (c *Client) Send(ctx context.Context, events []Event) (taken int, err error) {
	byRecipient, err := c.encodeEvents(events)
	if err != nil || len(byRecipient) == 0 {
		return 0, err
	}
	var sum atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	// Limits the number of recipients that are served concurrently. To keep the order, only one
	// batch of each recipient is in flight.
	g.SetLimit(maxSends)
	for _, l := range byRecipient {
		g.Go(func() error {
			for rest := l.messages; len(rest) > 0; {
				n, err := c.sendSome(ctx, rest)
				if err != nil {
					return fmt.Errorf("send to %s for %s: %w", c.o.Events, l.recipient, err)
				}
				for _, m := range rest[:n] {
					sum.Add(int64(m.events))
				}
				rest = rest[n:]
			}
			return nil
		})
	}
	err = g.Wait()
	return int(sum.Load()), err
}

// sendSome sends as many messages as fit into a batch, and returns their number.
func (c *Client) sendSome(ctx context.Context, messages []outgoingMessage) (n int, err error) {
	err = c.retryUntilDone(ctx, "send events", func() error {
		return c.events.withSender(ctx, func(sender *azservicebus.Sender) (err error) {
			n, err = sendBatch(ctx, sender, messages)
			return err
		})
	})
	return n, err
}

func sendBatch(ctx context.Context, sender *azservicebus.Sender, messages []outgoingMessage) (n int, err error) {
	batch, err := sender.NewMessageBatch(ctx, nil)
	if err != nil {
		return 0, err
	}
	for n < len(messages) {
		err := batch.AddMessage(messages[n].sent, nil)
		if errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	if n == 0 { // the message is too large for a batch, but the bus may accept it alone
		return 1, sender.SendMessage(ctx, messages[0].sent, nil)
	}
	return n, sender.SendMessageBatch(ctx, batch, nil)
}

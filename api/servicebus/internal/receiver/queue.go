package receiver

import (
	"context"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// ServeQueue receives the messages of a queue without sessions until ctx ends, with one loop at a
// time. The loops hold messages until work ends. delay returns the pause after a number of
// consecutive failures. ServeQueue closes bus when it returns.
func ServeQueue[T any](ctx, work context.Context, bus *Connection, delay func(failures int) time.Duration, newLoop func(*azservicebus.Receiver) *Loop[T]) {
	defer bus.Close(ctx)
	for failures := 0; ctx.Err() == nil; {
		client, err := bus.Acquire()
		if err == nil {
			var received int
			received, err = receiveFrom(ctx, work, bus, client, newLoop)
			bus.Release(ctx, client)
			if received > 0 {
				failures = 0
			}
		}
		switch {
		case err == nil || ctx.Err() != nil:
			continue
		case busclient.IsPanic(err): // the bus has responded; it delivers the message again when its lock expires
		default:
			bus.ReportFailure(ctx, client, err)
		}
		failures++
		busclient.Sleep(ctx, delay(failures))
	}
}

// receiveFrom opens a receiver, runs its loop, and closes the receiver.
func receiveFrom[T any](ctx, work context.Context, bus *Connection, client *busclient.Client, newLoop func(*azservicebus.Receiver) *Loop[T]) (received int, err error) {
	r, err := client.NewReceiverForQueue(bus.queue, nil)
	if err != nil {
		return 0, err
	}
	loop := newLoop(r)
	defer loop.Close(ctx)
	if err := checkReachable(ctx, r); err != nil {
		return 0, err
	}
	bus.ReportSuccess()
	err = loop.Run(ctx, work)
	return loop.Received(), err
}

// checkReachable returns an error if messages of the queue cannot be received. A receiver reports
// such an error only when a message arrives, which may never happen. checkReachable peeks beyond
// the last message, because Microsoft's client may be unable to decode an existing message.
func checkReachable(ctx context.Context, r *azservicebus.Receiver) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	afterTheLast := int64(math.MaxInt64)
	_, err := r.PeekMessages(ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &afterTheLast})
	return err
}

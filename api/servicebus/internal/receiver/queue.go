package ingest

import (
	"context"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
)

// serveQueue takes the messages of a queue without sessions, with one receiver at a
// time, until ctx ends.
func (in *Ingestion) serveQueue(ctx, work context.Context, queue string) {
	bus := newQueueConnection(&in.opts, queue, in.metrics.connected)
	defer bus.close(ctx)
	for failures := 0; ctx.Err() == nil; {
		client, err := bus.Acquire()
		if err == nil {
			var received int
			received, err = in.receiveFrom(ctx, work, bus, client, queue)
			bus.Release(ctx, client)
			if received > 0 {
				failures = 0
			}
		}
		switch {
		case err == nil || ctx.Err() != nil:
			continue
		case busclient.IsPanic(err): // the queue works; the lock of the message has to end before it comes again
		default:
			bus.reportFailure(ctx, client, err)
		}
		failures++
		busclient.Sleep(ctx, in.delay(failures))
	}
}

// receiveFrom runs the loop of one receiver.
func (in *Ingestion) receiveFrom(ctx, work context.Context, bus *queueConnection, client *busclient.Client, queue string) (received int, err error) {
	r, err := client.NewReceiverForQueue(queue, nil)
	if err != nil {
		return 0, err
	}
	s := &eventStore{in: in, queue: queue, logger: in.opts.Logger.With("queue", queue)}
	s.loop = receiver.NewQueue(s.loopOptions(queue), r)
	defer s.loop.Close(ctx)
	if err := reach(ctx, r); err != nil {
		return 0, err
	}
	bus.reportSuccess()
	err = s.loop.Run(ctx, work)
	return s.loop.Received(), err
}

// reach finds out whether the queue can be received from. A receiver tells of that
// only when there is something to receive, which may be never. It asks for what comes
// after the last message, so it reads none: there may be one that the client cannot.
func reach(ctx context.Context, r *azservicebus.Receiver) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	afterTheLast := int64(math.MaxInt64)
	_, err := r.PeekMessages(ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &afterTheLast})
	return err
}

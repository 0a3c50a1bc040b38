package ingest

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
)

// serveQueue receives the messages of a queue without sessions until ctx ends.
func (in *Ingestion) serveQueue(ctx, work context.Context, queue string) {
	bus := receiver.NewConnection(queue, in.opts.Open, in.metrics.loops, in.opts.Logger)
	receiver.ServeQueue(ctx, work, bus, in.retryDelay, func(r *azservicebus.Receiver) *receiver.Loop[messageEvents] {
		s := &eventStore{in: in, logger: in.opts.Logger.With("queue", queue)}
		s.loop = receiver.NewQueue(s.loopOptions(queue), r)
		return s.loop
	})
}

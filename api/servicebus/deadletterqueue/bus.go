package deadletterqueue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
)

// Options are the options of a Bus. Open is required.
type Options struct {
	// Open creates a client without connecting. It is called again after a client has failed.
	Open func() (*azservicebus.Client, error)

	// FetchesAny reports whether the bus returns any dead letter by its sequence number, as the
	// embedded bus does. Azure returns only deferred dead letters by sequence number.
	FetchesAny bool

	// Count returns the number of dead letters of a queue. By default, isKnown is always false.
	Count func(queue string) (n int64, isKnown bool)

	Clock  func() time.Time // default: time.Now
	Logger *slog.Logger     // default: none
}

// A Bus gives access to the dead letters of queues.
type Bus struct {
	opts Options
	bus  *busclient.Connection

	mu     sync.Mutex
	orders map[string]*semaphore.Weighted // one semaphore for each queue; the running order holds it
}

var _ deadletters.Bus = (*Bus)(nil)

// New returns a Bus that connects when it is first used. Close closes the connection.
func New(o Options) *Bus {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Count == nil {
		o.Count = func(string) (int64, bool) { return 0, false }
	}
	return &Bus{
		opts: o, bus: busclient.NewConnection(busclient.Options{Open: o.Open, Logger: o.Logger}),
		orders: make(map[string]*semaphore.Weighted),
	}
}

// Close closes the connection, even if calls are in flight.
func (b *Bus) Close(ctx context.Context) error {
	return busclient.Outlast(ctx, busclient.CloseTimeout, b.bus.Close)
}

// Count implements deadletters.Bus.
func (b *Bus) Count(queue string) (n int64, isKnown bool) { return b.opts.Count(queue) }

// callTimeout is the time limit of one call to Microsoft's client. A call continues when the
// caller's context ends, because the client must not be interrupted while it opens a link.
const callTimeout = 20 * time.Second

// A callError is the failure of a call to Microsoft's client. asDomainError converts it to an error
// of package domain.
type callError struct {
	failure *busclient.Failure
}

func (e *callError) Error() string { return e.failure.Error() }

// callClient calls f, which makes one call to Microsoft's client, with the time limit callTimeout.
// It returns a *callError if the call fails, or a *busclient.PanicError if the client panics.
func callClient(ctx context.Context, f func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = &busclient.PanicError{Value: v}
		}
	}()
	if err := f(ctx); err != nil {
		return &callError{busclient.Classify(err)}
	}
	return nil
}

// withReceiver calls f with a receiver for the dead letters of a queue.
func (b *Bus) withReceiver(ctx context.Context, queue string, f func(*azservicebus.Receiver) error) error {
	if err := ctx.Err(); err != nil {
		return domain.Errorf(domain.Unavailable, "no time is left for the call: %w", err)
	}
	client, err := b.bus.Acquire()
	if err != nil {
		return domain.Errorf(domain.Unavailable, "%w", err)
	}
	defer b.bus.Release(ctx, client)
	r, err := client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		return domain.Errorf(domain.Unavailable, "receive dead letters of queue %s: %w", queue, busclient.Classify(err))
	}
	defer func() {
		if err := busclient.Outlast(ctx, busclient.CloseTimeout, r.Close); err != nil {
			b.opts.Logger.Debug("a receiver of dead letters was not closed in time", "queue", queue, "error", err)
		}
	}()
	err = f(r)
	if failed, ok := errors.AsType[*callError](err); ok && failed.failure.ReplaceClient {
		b.bus.Replace(ctx, client)
	}
	return asDomainError(queue, err)
}

// asDomainError converts a *callError to an error of package domain. It returns any other error
// unchanged, because that error already has a kind.
func asDomainError(queue string, err error) error {
	failed, ok := errors.AsType[*callError](err)
	if !ok {
		if busclient.IsPanic(err) {
			return domain.Errorf(domain.Damaged, "the client of Service Bus cannot read a dead letter of queue %s: %w", queue, err)
		}
		return err
	}
	if _, isClassified := errors.AsType[*domain.Error](err); isClassified {
		return err
	}
	kind := domain.Unavailable
	switch failed.failure.Reason {
	case busclient.NotFound:
		kind = domain.NotFound
	case busclient.LockLost, busclient.SessionHeld:
		kind = domain.Busy
	case busclient.NotAllowed, busclient.TooLarge, busclient.Unauthorized, busclient.Disabled, busclient.Full:
		kind = domain.Conflict
	default: // the bus cannot be reached
	}
	return domain.Errorf(kind, "dead letters of queue %s: %w", queue, err)
}

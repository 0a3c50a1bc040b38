package domainclient

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// closeTimeout limits the work at the end of a task. Without it, Microsoft's client would wait
// minutes for a lost connection.
const closeTimeout = 5 * time.Second

// closingContext returns a context for work that must be done even if ctx has ended.
func closingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
}

// A panicError is a recovered panic.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// recoverPanic turns a panic of f into an error.
func recoverPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return f()
}

// receiveNext returns the next message, or nil if the link is lost, which is a temporary failure.
// After a [busclient.PanicError], the receiver must not be used again.
func receiveNext(ctx context.Context, from busclient.Receiver) (*azservicebus.ReceivedMessage, error) {
	m, err := busclient.ReceiveOne(ctx, from)
	if errors.Is(err, busclient.ErrLinkLost) {
		return nil, nil //nolint:nilnil // the caller waits and receives again
	}
	return m, err
}

// A settler settles messages.
type settler interface {
	DeadLetterMessage(ctx context.Context, message *azservicebus.ReceivedMessage, options *azservicebus.DeadLetterOptions) error
}

// deadLetter dead-letters an unreadable message with why as the description.
func (c *Client) deadLetter(ctx context.Context, at settler, m *azservicebus.ReceivedMessage, why error) error {
	c.o.Logger.Error("a message became a dead letter", "message_id", m.MessageID, "error", why)
	settling, cancel := closingContext(ctx)
	defer cancel()
	reason, description := "Unreadable", clipText(why.Error())
	return at.DeadLetterMessage(settling, m, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &description})
}

// clipText shortens text and removes the characters that a message cannot contain.
func clipText(text string) string {
	const limit = 1000
	if len(text) > limit {
		text = text[:limit] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// keepLock renews a lock until release is called. The returned context ends when the lock is lost,
// because another receiver may then get the message.
func (c *Client) keepLock(ctx context.Context, until time.Time, renew func(context.Context) error) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	// The clocks of the bus and of this process may differ, so the remaining time of the lock is
	// only an estimate.
	every := min(max(until.Sub(c.o.Now())/2, time.Second), 10*time.Second)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := renew(ctx)
			if busclient.ReasonOf(err) == busclient.LockLost {
				cancel()
			}
		}
	})
	return ctx, func() {
		cancel()
		renewing.Wait()
	}
}

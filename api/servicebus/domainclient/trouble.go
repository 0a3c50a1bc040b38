package domainclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

// Pauses grow from the shortest to the longest while trouble lasts.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
)

// A patience makes the pauses between tries.
type patience struct{ next time.Duration }

// wait waits for the next pause, of which some is random. It returns false if ctx
// ends first.
func (p *patience) wait(ctx context.Context) bool {
	p.next = min(max(2*p.next, shortestPause), longestPause)
	timer := time.NewTimer(p.next/2 + rand.N(p.next/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// persist tries until it works, or will not, or ctx ends.
func (c *Client) persist(ctx context.Context, what string, try func() error) error {
	var p patience
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w; it is not known whether the last try arrived, and sending the same again is safe", err)
		case isFinal(err):
			return err
		}
		c.o.Logger.Warn("trying again", "doing", what, "error", err)
		if !p.wait(ctx) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// isFinal reports whether trouble will not pass by itself: somebody has to change
// a setting, a right or the message first.
func isFinal(err error) bool {
	if bus, ok := errors.AsType[*azservicebus.Error](err); ok {
		switch bus.Code {
		case azservicebus.CodeUnauthorizedAccess, azservicebus.CodeNotFound, azservicebus.CodeClosed:
			return true
		default:
			return false
		}
	}
	if wire, ok := errors.AsType[*amqp.Error](err); ok {
		switch wire.Condition {
		case amqp.ErrCondNotAllowed, amqp.ErrCondNotFound, amqp.ErrCondUnauthorizedAccess, amqp.ErrCondMessageSizeExceeded,
			amqp.ErrCondDecodeError, amqp.ErrCondInvalidField, amqp.ErrCondNotImplemented, amqp.ErrCondPreconditionFailed:
			return true
		}
	}
	return errors.Is(err, azservicebus.ErrMessageTooLarge) || errors.Is(err, ErrClosed)
}

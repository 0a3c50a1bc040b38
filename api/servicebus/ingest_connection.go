package servicebus

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/prometheus/client_golang/prometheus"
)

// closePatience is how long closing a receiver or a client may take. The bus ends
// what was not closed by itself, a little later.
const closePatience = 5 * time.Second

// ClientRetries are what clients do best with here: few, for this package tries
// again by itself and starts anew where the client would mend; but never none. Then
// the client, which renews its tokens in the background, would spin while the bus is
// away.
func ClientRetries() azservicebus.RetryOptions {
	return azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Second}
}

// A connection is the way to one queue: a client, and a new one when that has
// failed for good. It knows whether the queue can be reached, and tells of it when
// that changes.
type connection struct {
	open      func() (*azservicebus.Client, error)
	logger    *slog.Logger
	queue     string
	connected *prometheus.GaugeVec // queue; without a value until the bus has answered once: 0 would be a false alarm

	mu       sync.Mutex
	current  *connected // nil before the first use, and after a failure
	failures int        // in a row
	closing  sync.WaitGroup
}

// connected is a client with those who use it. The last one closes it, once it is
// no longer the current one.
type connected struct {
	*azservicebus.Client
	users   int
	retired bool
}

// use returns the current client. Whoever gets it calls release.
func (c *connection) use() (*connected, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		client, err := c.open()
		if err != nil {
			return nil, err
		}
		c.current = &connected{Client: client}
	}
	c.current.users++
	return c.current, nil
}

func (c *connection) release(ctx context.Context, used *connected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used.users--
	c.closeUnused(ctx, used)
}

// closeUnused closes a client that nobody uses or will use.
func (c *connection) closeUnused(ctx context.Context, used *connected) {
	if used.users > 0 || !used.retired {
		return
	}
	c.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		if err := used.Close(ctx); err != nil {
			c.logger.Debug("a client was not closed in time", "error", err)
		}
	})
}

// retire has the current client closed when its last user is done with it.
func (c *connection) retire(ctx context.Context) {
	if c.current == nil {
		return
	}
	c.current.retired = true
	c.closeUnused(ctx, c.current)
	c.current = nil
}

// close waits until the clients are closed. Nobody may use them any more.
func (c *connection) close(ctx context.Context) {
	c.mu.Lock()
	c.retire(ctx)
	c.mu.Unlock()
	c.closing.Wait()
}

// works notes that the queue can be received from.
func (c *connection) works() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		c.logger.Info("the queue can be received from again", "failures", c.failures)
	}
	c.failures = 0
	c.connected.WithLabelValues(c.queue).Set(1)
}

// fails notes that it cannot. A client that was used without success several times,
// or whose credentials are no good, is not used again; used is nil if none could be
// opened.
func (c *connection) fails(ctx context.Context, used *connected, err error) {
	const enough = 3
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.connected.WithLabelValues(c.queue).Set(0)
	if c.failures&(c.failures-1) == 0 { // the first time, the second, the fourth …: a long outage fills no disk
		c.logger.Warn("the queue cannot be received from; trying again", "error", err, "failures", c.failures, "hint", hint(err))
	}
	if used != nil && used == c.current && (c.failures%enough == 0 || code(err) == azservicebus.CodeUnauthorizedAccess) {
		c.retire(ctx)
	}
}

// hint tells an operator what to do about an error of the bus.
func hint(err error) string {
	switch code(err) {
	case azservicebus.CodeUnauthorizedAccess:
		return "give the hub credentials that may listen to the queue; new ones are used at the next attempt"
	case azservicebus.CodeNotFound:
		return "create the queue, or correct its name in the configuration"
	default:
		return "see whether the bus is up and can be reached from here"
	}
}

// code returns what kind of error the client calls it, or "".
func code(err error) azservicebus.Code {
	if e, ok := errors.AsType[*azservicebus.Error](err); ok {
		return e.Code
	}
	return ""
}

package ingest

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// A queueConnection is the connection to one queue. It logs and counts whether the queue
// can be received from.
type queueConnection struct {
	*busclient.Connection
	logger    *slog.Logger
	connected func(value float64) // not called until the bus has answered once: 0 would be a false alarm

	mu       sync.Mutex
	failures int // in a row
}

func newQueueConnection(o *Options, queue string, connected *prometheus.GaugeVec) *queueConnection {
	logger := o.Logger.With("queue", queue)
	return &queueConnection{
		Connection: busclient.NewConnection(busclient.Options{Open: o.Open, Logger: logger}),
		logger:     logger,
		connected:  func(value float64) { connected.WithLabelValues(queue).Set(value) },
	}
}

// close waits until the clients are closed, which must have no users.
func (c *queueConnection) close(ctx context.Context) {
	_ = busclient.Outlast(ctx, busclient.CloseTimeout, c.Close) // it always reports success
}

// reportSuccess logs that the queue can be received from, if it could not before.
func (c *queueConnection) reportSuccess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		c.logger.Info("the queue can be received from again", "failures", c.failures)
	}
	c.failures = 0
	c.connected(1)
}

// reportFailure logs that the queue cannot be received from. A client that failed several
// times, or whose credentials are refused, is retired; used is nil if none could be
// opened.
func (c *queueConnection) reportFailure(ctx context.Context, used *busclient.Client, err error) {
	const enough = 3
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.connected(0)
	if c.failures&(c.failures-1) == 0 { // the first time, the second, the fourth …: a long outage fills no disk
		c.logger.Warn("the queue cannot be received from; trying again", "error", err, "failures", c.failures, "hint", hint(err))
	}
	if used != nil && (c.failures%enough == 0 || busclient.ReasonOf(err) == busclient.Unauthorized) {
		c.Retire(ctx, used)
	}
}

// hint tells an operator what to do about an error of the bus.
func hint(err error) string {
	switch busclient.ReasonOf(err) {
	case busclient.Unauthorized:
		return "give the hub credentials that may listen to the queue; new ones are used at the next attempt"
	case busclient.NotFound:
		return "create the queue, or correct its name in the configuration"
	default:
		return "see whether the bus is up and can be reached from here"
	}
}

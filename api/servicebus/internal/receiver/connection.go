package receiver

import (
	"context"
	"log/slog"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// A Connection is the connection to one queue. It logs and counts whether the queue can be reached.
type Connection struct {
	*busclient.Connection
	queue     string
	logger    *slog.Logger
	connected func(value float64) // sets the metric; called only after the first reply of the bus, so that a 0 is not a false alarm

	mu       sync.Mutex
	failures int // consecutive failures
}

// NewConnection returns a connection that is opened when it is first used. open creates a client.
func NewConnection(queue string, open func() (*azservicebus.Client, error), metrics *Metrics, logger *slog.Logger) *Connection {
	logger = logger.With("queue", queue)
	return &Connection{
		Connection: busclient.NewConnection(busclient.Options{Open: open, Logger: logger}),
		queue:      queue,
		logger:     logger,
		connected:  func(value float64) { metrics.connected.WithLabelValues(queue).Set(value) },
	}
}

// Close waits until the clients are closed. The clients must have no users.
func (c *Connection) Close(ctx context.Context) {
	_ = busclient.Outlast(ctx, busclient.CloseTimeout, c.Connection.Close) // Connection.Close always returns nil
}

// ReportSuccess logs that the queue can be reached, if the last report was a failure.
func (c *Connection) ReportSuccess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		c.logger.Info("the queue can be received from again", "failures", c.failures)
	}
	c.failures = 0
	c.connected(1)
}

// ReportFailure logs that the queue cannot be reached. It retires a client that has failed several
// times or whose credentials are refused. used is nil if no client could be opened.
func (c *Connection) ReportFailure(ctx context.Context, used *busclient.Client, err error) {
	const enough = 3
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.connected(0)
	if c.failures&(c.failures-1) == 0 { // failures 1, 2, 4, 8 and so on are logged, so that a long outage does not fill the disk
		c.logger.Warn("the queue cannot be received from; trying again", "error", err, "failures", c.failures, "hint", connectionHint(err))
	}
	if used != nil && (c.failures%enough == 0 || busclient.ReasonOf(err) == busclient.Unauthorized) {
		c.Retire(ctx, used)
	}
}

// connectionHint returns the advice to an operator for an error from the bus.
func connectionHint(err error) string {
	switch busclient.ReasonOf(err) {
	case busclient.Unauthorized:
		return "give the hub credentials that may listen to the queue; new ones are used at the next attempt"
	case busclient.NotFound:
		return "create the queue, or correct its name in the configuration"
	default:
		return "see whether the bus is up and can be reached from here"
	}
}

package busclient

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Times for calls of the client, each of which gets one of its own.
const (
	SendTimeout  = 20 * time.Second // to open links, and to send over them
	CloseTimeout = 5 * time.Second  // to close what was opened; the bus ends what was not closed a little later
)

// Retries are those within clients of a Connection: few, because its users retry with a new
// client. They must not be zero: then the client, which renews its tokens in the background,
// would spin while the bus cannot be reached.
func Retries() azservicebus.RetryOptions {
	return azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Second}
}

// ErrClosed reports the use of a Connection after Close.
var ErrClosed = errors.New("the connection to Service Bus is closed")

// An OpenError reports that a Connection has no client, and why.
type OpenError struct{ err error }

func (e *OpenError) Error() string {
	return "no client for Service Bus could be made; check its settings: " + e.err.Error()
}

func (e *OpenError) Unwrap() error { return e.err }

// Options set up a Connection. Open is required.
type Options struct {
	// Open makes a client, and no call. It is called again when a client was retired, so
	// that new credentials are found.
	Open func() (*azservicebus.Client, error)

	// KeepClient never retires a client because a sender failed: the client has retries
	// enough to repair its connection.
	KeepClient bool

	// SendersPerQueue is the maximum number of links for the senders of a queue. Default: 1.
	SendersPerQueue int

	Logger *slog.Logger // default: none
}

// A Connection is a client of a bus that its users share. It is opened when it is first
// needed. A client that has failed is retired: the next user gets another one, and its
// last user closes it.
type Connection struct {
	opts Options

	mu      sync.Mutex
	current *Client // nil before the first use, and after a failure
	users   int     // of all clients
	closed  bool
	closing sync.WaitGroup // incremented only while mu is held and closed is false
}

// A Client is one client of a Connection. What may change is guarded by the mu of the
// Connection.
type Client struct {
	*azservicebus.Client
	senders map[string][]*sharedSender // by queue
	users   int
	retired bool
}

// NewConnection returns a Connection that is opened when it is first used.
func NewConnection(o Options) *Connection {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.SendersPerQueue = cmp.Or(o.SendersPerQueue, 1)
	return &Connection{opts: o}
}

// Acquire returns the current client. Each Acquire needs one Release.
func (c *Connection) Acquire() (*Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &OpenError{ErrClosed}
	}
	if c.current == nil {
		opened, err := c.opts.Open()
		if err != nil {
			return nil, &OpenError{err}
		}
		c.current = &Client{Client: opened, senders: make(map[string][]*sharedSender)}
	}
	c.current.users++
	c.users++
	return c.current, nil
}

// Release ends a use of client. The last user of a retired client closes it.
func (c *Connection) Release(ctx context.Context, client *Client) {
	c.mu.Lock()
	client.users--
	c.users--
	c.unlockAndClose(ctx, client)
}

// Retire gives client to no more users, and reports whether it was the current one.
func (c *Connection) Retire(ctx context.Context, client *Client) bool {
	c.mu.Lock()
	if c.current != client {
		c.mu.Unlock()
		return false
	}
	client.retired, c.current = true, nil
	c.unlockAndClose(ctx, client)
	return true
}

// Replace retires client and logs that.
func (c *Connection) Replace(ctx context.Context, client *Client) {
	if c.Retire(ctx, client) {
		c.opts.Logger.Info("the connection to Service Bus is being replaced")
	}
}

// unlockAndClose unlocks mu, and closes client in the background if it is retired and
// has no users.
func (c *Connection) unlockAndClose(ctx context.Context, client *Client) {
	unused := client.retired && client.users == 0
	if unused && !c.closed {
		c.closing.Go(func() { c.closeClient(ctx, client) })
		unused = false
	}
	c.mu.Unlock()
	if unused { // Close waits for no more of them
		c.closeClient(ctx, client)
	}
}

func (c *Connection) closeClient(ctx context.Context, client *Client) {
	if err := Outlast(ctx, CloseTimeout, client.Close); err != nil {
		c.opts.Logger.Debug("a client was not closed in time", "error", err)
	}
}

// Close closes the current client, also for those who still use it, and waits until the
// retired clients without users are closed.
func (c *Connection) Close(ctx context.Context) error {
	c.mu.Lock()
	current := c.current
	c.closed, c.current = true, nil
	c.mu.Unlock()
	var err error
	if current != nil {
		err = current.Close(ctx)
	}
	c.closing.Wait()
	return err
}

// LeastUsed returns the first of the connections with the fewest users, so that no unneeded
// connection is opened.
func LeastUsed(connections []*Connection) *Connection {
	users := func(c *Connection) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.users
	}
	return slices.MinFunc(connections, func(a, b *Connection) int { return cmp.Compare(users(a), users(b)) })
}

// Outlast calls f with a context that ends after d, although ctx may have ended.
func Outlast(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	return f(ctx)
}

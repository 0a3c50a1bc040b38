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

// Timeouts of calls of the client, one for each call.
const (
	SendTimeout  = 20 * time.Second // for opening links and sending over them
	CloseTimeout = 5 * time.Second  // for closing; the bus closes the rest a little later
)

// Retries returns the retry options for clients of a Connection. They are few,
// because its users retry with a new client. They must not be zero: then the
// client, which renews its tokens in the background, would spin while the bus
// cannot be reached.
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

// Options are the options of a Connection. Open is required.
type Options struct {
	// Open makes a client without making a call. It is called again after a
	// client was retired, so that new credentials are used.
	Open func() (*azservicebus.Client, error)

	// KeepClient prevents that a client is retired because a sender failed: the
	// client has enough retries to repair its connection.
	KeepClient bool

	// SendersPerQueue is the maximum number of links for the senders of a queue. Default: 1.
	SendersPerQueue int

	Logger *slog.Logger // default: none
}

// A Connection is a client of a bus that its users share. It is opened at its
// first use. A client that has failed is retired: the next user gets another
// one, and its last user closes it.
type Connection struct {
	opts Options

	mu      sync.Mutex
	current *Client // nil before the first use, and after a failure
	users   int     // users of all clients
	closed  bool
	closing sync.WaitGroup // incremented only while mu is held and closed is false
}

// A Client is one client of a Connection. The mutex of the Connection guards
// its changing fields.
type Client struct {
	*azservicebus.Client
	senders map[string][]*sharedSender // senders by queue
	users   int
	retired bool
}

// NewConnection returns a Connection that is opened at its first use.
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

// Retire lets no further users get client, and reports whether it was the
// current one.
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
	if unused { // Close does not wait for further ones
		c.closeClient(ctx, client)
	}
}

func (c *Connection) closeClient(ctx context.Context, client *Client) {
	if err := Outlast(ctx, CloseTimeout, client.Close); err != nil {
		c.opts.Logger.Debug("a client was not closed in time", "error", err)
	}
}

// Close closes the current client, even if it is in use, and waits until the
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

// Outlast calls f with a context that ends after d, even if ctx has ended.
func Outlast(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	return f(ctx)
}

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

// Time limits for a single call to the client.
const (
	SendTimeout  = 20 * time.Second // for opening a link and sending a message
	CloseTimeout = 5 * time.Second  // for closing; after this time, the bus closes the link or the connection itself
)

// Retries returns the retry options for clients of a Connection. The client retries only once,
// because the users of a Connection retry with a new client. It must retry at least once: a client
// without retries spins in the background while it cannot renew its tokens.
func Retries() azservicebus.RetryOptions {
	return azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: time.Second}
}

// ErrClosed reports the use of a Connection after Close.
var ErrClosed = errors.New("the connection to Service Bus is closed")

// An OpenError reports why a Connection could not open a client.
type OpenError struct{ err error }

func (e *OpenError) Error() string {
	return "no client for Service Bus could be made; check its settings: " + e.err.Error()
}

func (e *OpenError) Unwrap() error { return e.err }

// Options are the options of a Connection. Open is required.
type Options struct {
	// Open creates a client without connecting. It is called again after a client was retired, so
	// that new credentials take effect.
	Open func() (*azservicebus.Client, error)

	// KeepClient means that a failed sender does not retire its client. It is for clients with
	// enough retries to repair their connection.
	KeepClient bool

	// SendersPerQueue is the maximum number of links to one queue for sending. Default: 1.
	SendersPerQueue int

	Logger *slog.Logger // default: none
}

// A Connection is a shared client of a bus, which is opened when it is first used. When a client
// fails, it is retired: the next user gets a new client, and the last user of the retired client
// closes it.
type Connection struct {
	opts Options

	mu      sync.Mutex
	current *Client // nil before the first use and after a failure
	users   int     // number of users of all clients, including retired ones
	closed  bool
	closing sync.WaitGroup // incremented only while mu is held and closed is false
}

// A Client is one client of a Connection. Its mutable fields are guarded by the mutex of the
// Connection.
type Client struct {
	*azservicebus.Client
	senders map[string][]*sharedSender // senders by queue
	users   int
	retired bool
}

// NewConnection returns a Connection that is opened when it is first used.
func NewConnection(o Options) *Connection {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.SendersPerQueue = cmp.Or(o.SendersPerQueue, 1)
	return &Connection{opts: o}
}

// Acquire returns the current client. The caller must call Release once for each Acquire.
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

// Release ends one use of client. If client is retired and has no other users, Release closes it.
func (c *Connection) Release(ctx context.Context, client *Client) {
	c.mu.Lock()
	client.users--
	c.users--
	c.unlockAndClose(ctx, client)
}

// Retire prevents new uses of client, and reports whether client was the current one.
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

// Replace retires client, and logs the replacement.
func (c *Connection) Replace(ctx context.Context, client *Client) {
	if c.Retire(ctx, client) {
		c.opts.Logger.Info("the connection to Service Bus is being replaced")
	}
}

// unlockAndClose unlocks mu. If client is retired and has no users, unlockAndClose closes client in
// the background.
func (c *Connection) unlockAndClose(ctx context.Context, client *Client) {
	unused := client.retired && client.users == 0
	if unused && !c.closed {
		c.closing.Go(func() { c.closeClient(ctx, client) })
		unused = false
	}
	c.mu.Unlock()
	if unused { // after Close, no caller waits for this client to close
		c.closeClient(ctx, client)
	}
}

func (c *Connection) closeClient(ctx context.Context, client *Client) {
	if err := Outlast(ctx, CloseTimeout, client.Close); err != nil {
		c.opts.Logger.Debug("a client was not closed in time", "error", err)
	}
}

// Close closes the current client, even if it is in use. It waits until each retired client without
// users is closed.
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

// LeastUsed returns the connection with the fewest users. Of several such connections it returns
// the first, so that no more connections are opened than needed.
func LeastUsed(connections []*Connection) *Connection {
	users := func(c *Connection) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.users
	}
	return slices.MinFunc(connections, func(a, b *Connection) int { return cmp.Compare(users(a), users(b)) })
}

// Outlast calls f with a context that ends after d, even if ctx has already ended.
func Outlast(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	return f(ctx)
}

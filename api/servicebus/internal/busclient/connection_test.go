package busclient_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

const queue = "q"

// A countedBus counts the clients that were opened, and their open connections.
type countedBus struct {
	*embedded.Namespace
	clients, open atomic.Int64
	fails         atomic.Bool // whether creating a client fails
	away          atomic.Bool // whether opening a connection fails
}

func newBus(t *testing.T) *countedBus {
	t.Helper()
	n, err := embedded.Open(embedded.Options{Entities: embedded.Entities{Queues: []embedded.QueueSetup{{Name: queue}}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return &countedBus{Namespace: n}
}

var errNoCredential = errors.New("no credential")

func (b *countedBus) client() (*azservicebus.Client, error) {
	if b.fails.Load() {
		return nil, errNoCredential
	}
	b.clients.Add(1)
	return azservicebus.NewClientFromConnectionString(b.ConnectionString(""), &azservicebus.ClientOptions{
		RetryOptions: busclient.Retries(),
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			if b.away.Load() {
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
			conn, err := b.Dial(ctx)
			if err != nil {
				return nil, err
			}
			b.open.Add(1)
			return &countedConn{Conn: conn, open: &b.open}, nil
		},
	})
}

type countedConn struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// newConnection returns a connection to the bus. It is closed at the end of the test.
func (b *countedBus) newConnection(t *testing.T, change ...func(*busclient.Options)) *busclient.Connection {
	t.Helper()
	o := busclient.Options{Open: b.client}
	for _, c := range change {
		c(&o)
	}
	c := busclient.NewConnection(o)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

// openClient makes client open its connection to the bus.
func openClient(t *testing.T, client *busclient.Client) {
	t.Helper()
	s, err := client.NewSender(queue, nil)
	require.NoError(t, err)
	require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{}, nil))
}

func TestUsersShareAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t)
		c := b.newConnection(t)
		require.Zero(t, b.clients.Load(), "it is opened when it is needed")
		first, err := c.Acquire()
		require.NoError(t, err)
		second, err := c.Acquire()
		require.NoError(t, err)
		require.Same(t, first, second)
		openClient(t, first)
		c.Release(t.Context(), first)
		c.Release(t.Context(), second)
		synctest.Wait()
		require.EqualValues(t, 1, b.open.Load(), "it stays open for the next user")
		again, err := c.Acquire()
		require.NoError(t, err)
		require.Same(t, first, again)
		c.Release(t.Context(), again)
		require.EqualValues(t, 1, b.clients.Load())
	})
}

func TestTheLastUserOfARetiredClientClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t)
		c := b.newConnection(t)
		failed, err := c.Acquire()
		require.NoError(t, err)
		_, err = c.Acquire()
		require.NoError(t, err)
		openClient(t, failed)
		require.True(t, c.Retire(t.Context(), failed))
		require.False(t, c.Retire(t.Context(), failed), "once")
		next, err := c.Acquire()
		require.NoError(t, err)
		require.NotSame(t, failed, next)
		openClient(t, next)
		c.Release(t.Context(), failed)
		synctest.Wait()
		require.EqualValues(t, 2, b.open.Load(), "the other user still has it")
		c.Release(t.Context(), failed)
		synctest.Wait()
		require.EqualValues(t, 1, b.open.Load())
		c.Release(t.Context(), next)
		require.True(t, c.Retire(t.Context(), next))
		synctest.Wait()
		require.Zero(t, b.open.Load(), "without users it is closed at once")
	})
}

func TestAClosedConnectionHasNoClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t)
		c := busclient.NewConnection(busclient.Options{Open: b.client})
		inUse, err := c.Acquire()
		require.NoError(t, err)
		openClient(t, inUse)
		require.NoError(t, c.Close(t.Context()))
		synctest.Wait()
		require.Zero(t, b.open.Load(), "not even those in use")
		c.Release(t.Context(), inUse)
		_, err = c.Acquire()
		require.ErrorIs(t, err, busclient.ErrClosed)
		require.EqualValues(t, 1, b.clients.Load())
	})
}

func TestARetiredClientIsClosedEvenAfterItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t)
		c := busclient.NewConnection(busclient.Options{Open: b.client})
		client, err := c.Acquire()
		require.NoError(t, err)
		openClient(t, client)
		c.Replace(t.Context(), client)
		require.NoError(t, c.Close(t.Context()))
		require.EqualValues(t, 1, b.open.Load())
		c.Release(t.Context(), client)
		require.Zero(t, b.open.Load())
	})
}

func TestAClientThatCannotBeOpenedIsOpenedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t)
		c := b.newConnection(t)
		b.fails.Store(true)
		_, err := c.Acquire()
		require.ErrorIs(t, err, errNoCredential)
		var failed *busclient.SendError
		require.ErrorAs(t, c.Send(t.Context(), queue, &azservicebus.Message{}), &failed)
		require.False(t, failed.Uncertain)
		require.EqualError(t, failed, "no client for Service Bus could be made; check its settings: no credential")
		b.fails.Store(false)
		require.NoError(t, c.Send(t.Context(), queue, &azservicebus.Message{}))
	})
}

func TestTheConnectionWithTheFewestUsersIsNext(t *testing.T) {
	b := newBus(t)
	all := []*busclient.Connection{b.newConnection(t), b.newConnection(t)}
	require.Same(t, all[0], busclient.LeastUsed(all))
	client, err := all[0].Acquire()
	require.NoError(t, err)
	require.Same(t, all[1], busclient.LeastUsed(all))
	all[0].Release(t.Context(), client)
	require.Same(t, all[0], busclient.LeastUsed(all))
}

// A sender that cannot reach the bus retires its client. The second attempt opens a new client.
func TestASenderThatFailsReplacesItsClient(t *testing.T) {
	for name, tc := range map[string]struct {
		keep    bool
		clients int64
	}{
		"each attempt has a client of its own": {false, 3},
		"unless the client repairs itself":     {true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t)
				c := b.newConnection(t, func(o *busclient.Options) { o.KeepClient = tc.keep })
				b.away.Store(true)
				err := c.Send(t.Context(), queue, &azservicebus.Message{})
				var failed *busclient.SendError
				require.ErrorAs(t, err, &failed)
				require.False(t, failed.Uncertain, "no link was open")
				require.ErrorContains(t, err, "send to queue q: the bus cannot be reached")
				b.away.Store(false)
				require.NoError(t, c.Send(t.Context(), queue, &azservicebus.Message{}))
				require.Equal(t, tc.clients, b.clients.Load())
			})
		})
	}
}

func TestSenders_UseTheConfiguredNumberOfLinks(t *testing.T) {
	for name, tc := range map[string]struct{ limit, links int }{
		"one":            {0, 1},
		"up to a limit":  {3, 3},
		"as many as use": {10, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t)
				c := b.newConnection(t, func(o *busclient.Options) { o.SendersPerQueue = tc.limit })
				const users = 5
				var mu sync.Mutex
				links := make(map[*azservicebus.Sender]bool)
				var all sync.WaitGroup
				release := make(chan struct{})
				for range users {
					all.Go(func() {
						assert.NoError(t, c.WithSender(t.Context(), queue, func(s *azservicebus.Sender) error {
							mu.Lock()
							links[s] = true
							mu.Unlock()
							<-release
							return nil
						}))
					})
				}
				synctest.Wait()
				require.Len(t, links, tc.links)
				close(release)
				all.Wait()
				require.NoError(t, c.WithSender(t.Context(), queue, func(s *azservicebus.Sender) error {
					require.Contains(t, links, s, "an idle one is used again")
					return nil
				}))
				require.EqualValues(t, 1, b.clients.Load())
			})
		})
	}
}

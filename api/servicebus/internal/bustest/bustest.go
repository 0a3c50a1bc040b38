// Package bustest provides an embedded bus with the queues of domains for the tests of package
// servicebus and its subpackages. It also provides clients of the bus, and an operator that changes
// the queues. Only tests import this package.
package bustest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
)

// Must returns v. It panics if err is not nil.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Origins are the origins of the domains that have queues on the bus.
var Origins = []domain.Origin{domain.TimeSeries, domain.Aggregations}

// QueuesOf returns the default queues of the domains with the given origins.
func QueuesOf(origins ...domain.Origin) map[domain.Origin]contract.Queues {
	all := make(map[domain.Origin]contract.Queues)
	for _, o := range origins {
		all[o] = contract.DefaultQueues(o.String())
	}
	return all
}

// Entities returns the queues of the domains in Origins.
func Entities() embedded.Entities {
	var e embedded.Entities
	add := func(name string, sessions bool) {
		q := embedded.QueueSetup{Name: name}
		q.Properties.RequiresSession = sessions
		e.Queues = append(e.Queues, q)
	}
	for _, q := range QueuesOf(Origins...) {
		add(q.Request, true)
		add(q.Reply, true)
		add(q.Dequeue, false)
	}
	return e
}

// Open opens a bus that is closed at the end of the test. By default, the bus has the queues of
// Origins.
func Open(t testing.TB, o embedded.Options) *embedded.Namespace {
	t.Helper()
	if o.Entities.Queues == nil {
		o.Entities = Entities()
	}
	n, err := embedded.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// Clients returns a function that creates clients of n in this process.
func Clients(n *embedded.Namespace) func() (*azservicebus.Client, error) {
	return func() (*azservicebus.Client, error) { return NewClient(n.ConnectionString(""), n.Dial) }
}

// NewClient returns a client that connects with dial.
func NewClient(connection string, dial func(context.Context) (net.Conn, error)) (*azservicebus.Client, error) {
	return azservicebus.NewClientFromConnectionString(connection, &azservicebus.ClientOptions{
		RetryOptions:     busclient.Retries(),
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return dial(ctx) },
	})
}

// ServeTCP serves n over loopback TCP, so that a benchmark includes the cost of TCP. It returns a
// function that creates clients.
func ServeTCP(b testing.TB, n *embedded.Namespace) func() (*azservicebus.Client, error) {
	b.Helper()
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, listener, embedded.ServeOptions{}) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-served)
	})
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(n.ConnectionString(listener.Addr().String()), &azservicebus.ClientOptions{
			RetryOptions: busclient.Retries(),
		})
	}
}

// WithoutLeaks fails the test if goroutines remain after the test. It is unnecessary with fake
// time: testing/synctest makes the same check.
func WithoutLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// InBubble returns a test that runs f with fake time (testing/synctest). Fake time does not advance
// while any goroutine works, so no timeout expires because of a slow machine.
func InBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// NewIDs returns a function that returns consecutive ids, which end in 1, 2 and so on.
func NewIDs() func() uuid.UUID {
	var last byte
	return func() uuid.UUID {
		last++
		return uuid.UUID{0: 0xab, 6: 0x40, 8: 0x80, 15: last}
	}
}

// ClockAt returns a clock that always returns at.
func ClockAt(at time.Time) func() time.Time { return func() time.Time { return at } }

// An Operator changes the queues of a bus.
type Operator struct {
	t      *testing.T
	Client *admin.Client
}

// NewOperator returns an Operator for the bus n.
func NewOperator(t *testing.T, n *embedded.Namespace) *Operator {
	t.Helper()
	client, err := admin.NewClientFromConnectionString(n.ConnectionString(""), &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: handlerTransport{n.Handler()}}})
	require.NoError(t, err)
	return &Operator{t, client}
}

// A handlerTransport passes requests to a handler without a network.
type handlerTransport struct{ handler http.Handler }

func (h handlerTransport) Do(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	h.handler.ServeHTTP(answer, r)
	return answer.Result(), nil
}

// CreateWithSessions creates a queue with sessions.
func (o *Operator) CreateWithSessions(queue string) {
	o.t.Helper()
	_, err := o.Client.CreateQueue(o.t.Context(), queue, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: to.Ptr(true)}})
	require.NoError(o.t, err)
}

// Delete deletes a queue.
func (o *Operator) Delete(queue string) {
	o.t.Helper()
	_, err := o.Client.DeleteQueue(o.t.Context(), queue, nil)
	require.NoError(o.t, err)
}

// SetStatus enables or disables a queue.
func (o *Operator) SetStatus(queue string, status admin.EntityStatus) {
	got, err := o.Client.GetQueue(context.Background(), queue, nil)
	if assert.NoError(o.t, err) {
		got.Status = &status
		_, err = o.Client.UpdateQueue(context.Background(), queue, got.QueueProperties, nil)
		assert.NoError(o.t, err)
	}
}

// IsSendLink reports whether a frame opens a link for sending to a queue.
func IsSendLink(frame, queue string) bool {
	return strings.Contains(frame, " <- ") && strings.Contains(frame, " attach ") && strings.Contains(frame, " Target="+queue+" ")
}

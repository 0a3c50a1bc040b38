package embedded_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// serveTLS serves a namespace on a port, with TLS. It returns the address and the TLS configuration for clients.
func serveTLS(t testing.TB, n *embedded.Namespace) (address string, secure *tls.Config) {
	t.Helper()
	borrowed := httptest.NewUnstartedServer(nil) // borrowed provides a certificate
	borrowed.StartTLS()
	defer borrowed.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, listener, embedded.ServeOptions{TLS: borrowed.TLS}) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return listener.Addr().String(), borrowed.Client().Transport.(*http.Transport).TLSClientConfig
}

// toAddress is an HTTP transport that sends every request to one address and ignores the host of the URL.
type toAddress struct{ http.RoundTripper }

func (c toAddress) Do(r *http.Request) (*http.Response, error) { return c.RoundTrip(r) }

// newAdminClient returns a client that manages the entities of the namespace.
func newAdminClient(t testing.TB, n *embedded.Namespace) *admin.Client {
	t.Helper()
	server := httptest.NewTLSServer(n.Handler())
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := admin.NewClientFromConnectionString("Endpoint=sb://example.com;SharedAccessKeyName="+embedded.WellKnownKeyName+";SharedAccessKey="+embedded.WellKnownKey,
		&admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: toAddress{transport}}})
	require.NoError(t, err)
	return c
}

func TestServe_AcceptsEveryProtocolOnOnePort(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	address, secure := serveTLS(t, n)
	connection := n.ConnectionString(address)
	for name, options := range map[string]*azservicebus.ClientOptions{
		"plain": nil,
		"secure": {NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
		}},
		"over WebSockets": {NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			ws, answer, err := websocket.Dial(ctx, "ws://"+address+"/$servicebus/websocket", &websocket.DialOptions{Subprotocols: []string{"AMQPWSB10"}})
			if err != nil {
				return nil, err
			}
			if answer.Body != nil {
				_ = answer.Body.Close()
			}
			return websocket.NetConn(context.Background(), ws, websocket.MessageBinary), nil
		}},
	} {
		c, err := azservicebus.NewClientFromConnectionString(connection, options)
		require.NoError(t, err)
		sendBodies(t, c, "q", name)
		r, err := c.NewReceiverForQueue("q", nil)
		require.NoError(t, err)
		m := receiveOne(t, r)
		require.Equal(t, name, string(m.Body))
		require.NoError(t, r.CompleteMessage(t.Context(), m, nil))
		require.NoError(t, c.Close(t.Context()))
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get("http://" + address + "/q")
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.Contains(t, string(text), "MissingToken")
	stats := n.Stats()
	require.EqualValues(t, 1, stats.Entities)
	require.Positive(t, stats.TransfersIn)
	require.Positive(t, stats.BytesOut)
}

func TestServe_ClosesConnectionsAboveTheLimit(t *testing.T) {
	n := openNamespace(t, embedded.Options{MaxConnections: 2})
	var held []net.Conn
	for range 2 {
		nc, err := n.Dial(t.Context())
		require.NoError(t, err)
		held = append(held, nc)
	}
	_, err := n.Dial(t.Context())
	require.Error(t, err)
	address, _ := serveTLS(t, n)
	nc, err := net.Dial("tcp", address)
	require.NoError(t, err)
	_, err = nc.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoError(t, nc.Close())
	for _, nc := range held {
		require.NoError(t, nc.Close())
	}
}

func TestEntities_AreManagedOverHTTP(t *testing.T) {
	n := openNamespace(t, embedded.Options{})
	c := newAdminClient(t, n)
	created, err := c.CreateQueue(t.Context(), "orders/new", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		LockDuration: to.Ptr("PT45S"), RequiresSession: to.Ptr(true), MaxDeliveryCount: to.Ptr(int32(3)),
	}})
	require.NoError(t, err)
	require.Equal(t, "PT45S", *created.LockDuration)
	_, err = c.CreateQueue(t.Context(), "Orders/New", nil)
	var refused *azcore.ResponseError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.StatusCode)
	s, err := newClient(t, n).NewSender("orders/new", nil)
	require.NoError(t, err)
	require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{SessionID: to.Ptr("s")}, nil))
	running, err := c.GetQueueRuntimeProperties(t.Context(), "orders/new", nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, running.ActiveMessageCount)
	none, err := c.GetQueue(t.Context(), "none", nil)
	require.NoError(t, err)
	require.Nil(t, none)

	_, err = c.CreateTopic(t.Context(), "news", nil)
	require.NoError(t, err)
	_, err = c.CreateSubscription(t.Context(), "news", "all", nil)
	require.NoError(t, err)
	_, err = c.CreateRule(t.Context(), "news", "all", &admin.CreateRuleOptions{Name: to.Ptr("red"), Filter: &admin.SQLFilter{Expression: "colour = @c", Parameters: map[string]any{"@c": "red"}}})
	require.NoError(t, err)
	rule, err := c.GetRule(t.Context(), "news", "all", "red", nil)
	require.NoError(t, err)
	require.Equal(t, &admin.SQLFilter{Expression: "colour = @c", Parameters: map[string]any{"@c": "red"}}, rule.Filter)
	_, err = c.DeleteTopic(t.Context(), "news", nil)
	require.NoError(t, err)
	page, err := c.NewListTopicsPager(nil).NextPage(t.Context())
	require.NoError(t, err)
	require.Empty(t, page.Topics)
}

// The key of an emulator is public. Therefore a web page in a developer's browser must not be able to access the queues
// on the developer's machine.
func TestServe_RefusesWebPagesOfOtherOrigins(t *testing.T) {
	n := openNamespace(t, embedded.Options{})
	address, _ := serveTLS(t, n)
	_, answer, err := websocket.Dial(t.Context(), "ws://"+address+"/$servicebus/websocket", &websocket.DialOptions{
		Subprotocols: []string{"AMQPWSB10"}, HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}},
	})
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for host, want := range map[string]int{
		"localhost": http.StatusUnauthorized, "127.0.0.1:99": http.StatusUnauthorized, "[::1]:99": http.StatusUnauthorized, "a.localhost": http.StatusUnauthorized,
		"elsewhere.example": http.StatusMisdirectedRequest, "localhost.example:99": http.StatusMisdirectedRequest, "192.0.2.1": http.StatusMisdirectedRequest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/q", nil)
		require.NoError(t, err)
		request.Host = host
		answer, err := (&http.Client{Transport: transport}).Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, want, answer.StatusCode, host)
	}
}

func TestServe_CountsHTTPConnections(t *testing.T) {
	n := openNamespace(t, embedded.Options{MaxConnections: 1})
	address, _ := serveTLS(t, n)
	transport := &http.Transport{}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/q", nil)
	require.NoError(t, err)
	key := embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey}
	r.Header.Set("Authorization", key.Sign("http://"+address+"/q", time.Now().Add(time.Hour)))
	answer, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, answer.Body)
	require.NoError(t, answer.Body.Close())
	_, err = n.Dial(t.Context())
	require.Error(t, err, "the idle connection is the one that may be")
	transport.CloseIdleConnections()
}

package webhook_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

// A network connects a Client to simulated servers through pipes.
type network struct {
	t     *testing.T
	mu    sync.Mutex
	hosts map[string][]netip.Addr
	serve map[string]func(net.Conn) // servers, by address and port; each call of a function serves one connection
	dials []string

	serving sync.WaitGroup
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, hosts: make(map[string][]netip.Addr), serve: make(map[string]func(net.Conn))}
	t.Cleanup(n.serving.Wait)
	return n
}

// add adds a host with one address, and serves its connections on port 80.
func (n *network) add(host, address string, serve func(net.Conn)) {
	n.hosts[host] = []netip.Addr{netip.MustParseAddr(address)}
	n.serve[net.JoinHostPort(address, "80")] = serve
}

func (n *network) lookUp(_ context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[host] == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return append([]netip.Addr(nil), n.hosts[host]...), nil
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials = append(n.dials, address)
	serve, ok := n.serve[address]
	switch {
	case !ok:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case serve == nil:
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	near, far := net.Pipe()
	n.serving.Go(func() {
		defer far.Close()
		serve(far)
	})
	return near, nil
}

// client returns a Client on the network. It is closed before the test waits for the servers to
// stop.
func (n *network) client(o webhook.Options) *webhook.Client {
	o.AllowHTTP, o.Dial, o.LookUp = true, n.dial, n.lookUp
	c := webhook.New(o)
	n.t.Cleanup(c.Close)
	return c
}

// respondWith returns a connection handler that responds to each request with text.
func respondWith(text string) func(net.Conn) {
	return func(conn net.Conn) {
		for skipRequest(conn) {
			if _, err := conn.Write([]byte(text)); err != nil {
				return
			}
		}
	}
}

// skipRequest reads a request. It returns false if the connection contains no further request.
func skipRequest(conn net.Conn) bool {
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func delivery(url string) *webhook.Delivery {
	s := &domain.Subscription{CallbackURL: url}
	s.SetDefaults()
	return &webhook.Delivery{
		ID: "msg_1", Subscription: "s-1", Settings: s,
		Message: &domain.Message{ID: "e-1", Attributes: map[string]string{"type": "t"}, ContentType: "application/json", Payload: []byte(`{"n":1}`)},
	}
}

func send(t *testing.T, c *webhook.Client, d *webhook.Delivery) webhook.Result {
	t.Helper()
	r, err := c.Send(t.Context(), d)
	require.NoError(t, err)
	require.LessOrEqual(t, len(r.Answer.Error), domain.MaxAttemptError)
	return r
}

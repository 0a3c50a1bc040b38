package simulate

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/simulate/scheduler"
)

// In most simulations, node.Options.Transport carries the requests of a hub to the accounts. In some simulations, a hub
// uses its own HTTP clients, as in production; node.Options.Dial and LookUp connect these clients to receivers in the
// bubble.

// The host of all receivers, and the ports of the accounts. Each hub uses a different port for the Cosmos account, above
// cosmosPort.
const (
	receiverHost    = "localhost"
	receiverAddress = "192.0.2.1"
	cosmosPort      = 8081
	blobPort        = "10000"
)

// cosmosEndpoint returns the endpoint of the Cosmos account for the settings of h. Each hub has a different endpoint,
// because azcosmos shares its cache of containers between all clients of an endpoint in one process. In production, a
// process has only one hub.
func (h *hub) cosmosEndpoint() string {
	if h.sim.plan.usesReceivers {
		return "http://" + net.JoinHostPort(receiverHost, strconv.Itoa(cosmosPort+100*h.index+h.number))
	}
	return endpointOfClient(h.who, h.sim.env.engine.Endpoint())
}

// endpointOfClient returns the endpoint of an account with a host name that begins with the client's name, so that each
// client has a different endpoint. The transports ignore the host name.
func endpointOfClient(who, endpoint string) string {
	return strings.Replace(withHTTPS(endpoint), "://", "://"+who+".", 1)
}

// blobEndpoint returns the endpoint of the Blob account for the settings of hubs and domains. Hubs and domains use the
// same endpoint, because a hub refuses content of a different account.
func (sim *simulation) blobEndpoint() string {
	if sim.plan.usesReceivers {
		return "http://" + net.JoinHostPort(receiverHost, blobPort) + "/" + sim.env.blobs.Name()
	}
	return withHTTPS(sim.env.blobs.Endpoint())
}

// lookUpHost resolves the only host that a hub may call.
func (sim *simulation) lookUpHost(_ context.Context, host string) ([]netip.Addr, error) {
	if host != receiverHost {
		return nil, errors.New("no host has the name " + host)
	}
	return []netip.Addr{netip.MustParseAddr(receiverAddress)}, nil
}

// An httpReceiver is an HTTP server that one hub calls. It forwards requests to the transport of the hub, which injects
// faults.
type httpReceiver struct {
	sim    *simulation
	who    string
	server *http.Server

	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// newHTTPReceiver returns the receiver of a hub's requests. The caller must shut the receiver down.
func (h *hub) newHTTPReceiver() *httpReceiver {
	r := &httpReceiver{sim: h.sim, who: h.who, conns: make(chan net.Conn), closed: make(chan struct{})}
	r.server = &http.Server{Handler: &httputil.ReverseProxy{ //nolint:gosec // its one client is the hub
		Transport:    accountTransport{h.transport},
		Rewrite:      func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", p.In.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // this panic breaks the connection
		ErrorLog:     log.New(io.Discard, "", 0),                                                      // truncated bodies are injected faults
	}}
	h.sim.background.Go(func() { _ = r.server.Serve(r) }) // Serve returns when the server is closed
	return r
}

type accountTransport struct{ policy.Transporter }

func (t accountTransport) RoundTrip(req *http.Request) (*http.Response, error) { return t.Do(req) }

// dialReceiver connects a hub to its receiver when the scheduler chooses the request.
func (r *httpReceiver) dialReceiver(ctx context.Context, _, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err != nil || host != receiverAddress {
		return nil, errors.New("no receiver has the address " + address)
	}
	near, far := net.Pipe()
	granted := make(chan bool, 1)
	t := &scheduler.Turn{
		Who: r.who, What: "dials " + address,
		Proceed: func() string { granted <- true; return "connected" },
		Faults: func() []scheduler.Fault {
			return []scheduler.Fault{{Name: "cut before", Inject: func() string { granted <- false; return "refused" }}}
		},
	}
	r.sim.Enqueue(t)
	select {
	case ok := <-granted:
		if !ok {
			return nil, errRefused
		}
	case <-r.closed:
		r.sim.Remove(t)
		return nil, errCut
	case <-ctx.Done():
		r.sim.Remove(t)
		return nil, ctx.Err()
	}
	select {
	case r.conns <- far:
		r.sim.MarkReached("a hub called a receiver by a connection of its own")
		return near, nil
	case <-r.closed:
		return nil, errCut
	}
}

// Accept implements net.Listener.
func (r *httpReceiver) Accept() (net.Conn, error) {
	select {
	case conn := <-r.conns:
		return conn, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Later connections are refused.
func (r *httpReceiver) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr implements net.Listener.
func (r *httpReceiver) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)} }

// shutDown ends the receiver and breaks its connections.
func (r *httpReceiver) shutDown() {
	_ = r.Close()
	_ = r.server.Close()
}

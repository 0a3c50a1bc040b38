package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// A network opens all connections from a node to other services: Azure
// accounts, the namespace, issuers of tokens, and hubs. No other code of a node
// dials, resolves a host name, or has an HTTP client;
// TestNoCallBypassesTheNetwork verifies this.
type network struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // dial replaces the operating system's function, unless nil
	lookUp func(ctx context.Context, host string) ([]netip.Addr, error)         // lookUp replaces the operating system's function, unless nil

	documents *http.Client // client for Cosmos DB
	services  *http.Client // client for Blob Storage, for the management of Service Bus, and for requests of the hub's own tokens
	hubs      *http.Client // client for other hubs, which sends an operator's token
	issuers   *http.Client // client for fetching the keys of token issuers
	probes    *http.Client // client of messagehub doctor for endpoints and a local hub; follows no redirects

	proxy func(*http.Request) (*url.URL, error) // returns the proxy for an HTTP request, or nil for no proxy
}

func newNetwork(o *Options) *network {
	n := &network{dial: o.Dial, lookUp: o.LookUp, proxy: http.ProxyFromEnvironment}
	if o.Proxy != nil {
		n.proxy = o.Proxy
	}
	documents := n.transport()
	documents.MaxIdleConns = 1000
	documents.MaxIdleConnsPerHost = 256
	documents.ResponseHeaderTimeout = 10 * time.Second
	n.documents = &http.Client{Transport: documents}

	services := n.transport() // the Azure SDK's settings, except for the limits of connections
	services.MaxIdleConns = 1000
	services.MaxIdleConnsPerHost = 128 // the maximum number of objects that one response reads concurrently
	services.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, Renegotiation: tls.RenegotiateFreelyAsClient}
	services.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	n.services = &http.Client{Transport: services}

	n.hubs = &http.Client{Transport: n.transport(), Timeout: 30 * time.Second}
	n.issuers = &http.Client{Transport: n.transport(), CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("an issuer does not redirect; set oidc.issuer to the URL that it calls itself")
	}}
	n.probes = &http.Client{Transport: n.transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return n
}

// hubTimeout is how long messagehub doctor waits for a response of a local hub
// or the namespace.
const hubTimeout = 2 * time.Second

// hubOnThisMachine returns the client with which messagehub doctor checks
// whether a hub runs on this machine. The client does not verify the hub's
// certificate, which is valid for another name. Its requests contain no secret.
func (n *network) hubOnThisMachine() *http.Client {
	t := n.transport()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // see above
	return &http.Client{Transport: t, Timeout: hubTimeout}
}

// resolve returns the addresses of a host for messagehub doctor. Other host
// names are resolved when a connection is dialed.
func (n *network) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if n.lookUp != nil {
		return n.lookUp(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// transport returns a new HTTP transport with the default settings of net/http.
func (n *network) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = n.proxy
	t.DialContext = n.dialHost(&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second})
	return t
}

// dialHost returns a function that connects to a host with the option Dial or,
// without it, with d. With the option LookUp, it tries the host's addresses in
// the order in which LookUp returns them.
func (n *network) dialHost(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := d.DialContext
	if n.dial != nil {
		dial = n.dial
	}
	if n.lookUp == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return dial(ctx, network, address)
		}
		addresses, err := n.lookUp(ctx, host)
		if err != nil {
			return nil, err
		}
		errs := []error{fmt.Errorf("connect to %s", host)}
		for _, a := range addresses {
			conn, err := dial(ctx, network, net.JoinHostPort(a.String(), port))
			if err == nil {
				return conn, nil
			}
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}
}

// dialBus connects to the namespace that a WebSocket URL names, but over plain
// AMQP, like the Service Bus client's default. It uses TLS unless the namespace
// is an emulator.
func (n *network) dialBus(ctx context.Context, webSocket string, isEmulator bool) (net.Conn, error) {
	u, err := url.Parse(webSocket)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	switch {
	case port != "":
	case isEmulator:
		port = "5672"
	default:
		port = "5671"
	}
	conn, err := n.dialHost(new(net.Dialer))(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil || isEmulator {
		return conn, err
	}
	secured := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

// close closes the idle connections.
func (n *network) close() {
	n.documents.CloseIdleConnections()
	n.services.CloseIdleConnections()
	n.hubs.CloseIdleConnections()
	n.issuers.CloseIdleConnections()
	n.probes.CloseIdleConnections()
}

// toDocuments returns the transport to Cosmos DB, and toServices the transport
// to other Azure services. Options.Transport replaces both.
func (o *Options) toDocuments() policy.Transporter {
	if o.Transport != nil {
		return o.Transport
	}
	return o.network.documents
}

func (o *Options) toServices() policy.Transporter {
	if o.Transport != nil {
		return o.Transport
	}
	return o.network.services
}

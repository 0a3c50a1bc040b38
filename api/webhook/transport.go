package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Limits of connections to receivers.
const (
	maxIdle        = 1000
	maxIdlePerHost = domain.MaxConcurrency // maximum idle connections to one host, which may serve several receivers
	maxHeader      = 64 << 10              // maximum bytes of a response's header
)

// newTransport returns the transport for all calls. dialHost opens its connections.
func (c *Client) newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // with a proxy, the guard would check the proxy's address instead of the receiver's
		DialContext:            c.dialHost,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.opts.RootCAs},
		TLSHandshakeTimeout:    c.opts.Timeout,
		ForceAttemptHTTP2:      true, // with a custom dialer, net/http disables HTTP/2 by default
		DisableCompression:     true, // the decompressed response could be far larger than the bytes that were read
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        90 * time.Second,
		// Limits of what a receiver may send before the hub reads it. The default is 4 MB for each
		// stream.
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: maxRead, MaxReceiveBufferPerConnection: 4 * maxRead,
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
		},
	}
}

// systemDial returns a function that connects to an address if the guard allows the address.
func systemDial(g *Guard) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{KeepAlive: 30 * time.Second, Control: g.checkConnect}).DialContext
}

// systemLookUp returns the addresses of a host from the system's resolver.
func systemLookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// dialHost connects to the first reachable address of a host that the guard allows. It has a
// separate deadline, because the transport does not cancel a dial when the call that started it
// ends.
func (c *Client) dialHost(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(c.lifetime, cancel)() //nolint:contextcheck // Close ends it, too
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := c.resolveHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, a := range addresses {
		if err := c.guard.Check(a); err != nil {
			errs = append(errs, err)
			continue
		}
		conn, err := c.dialOne(ctx, network, net.JoinHostPort(a.String(), port), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// dialOne connects to an address. left is the number of untried addresses, including this one.
// dialOne uses only its share of the remaining time, so that time remains for the next addresses.
func (c *Client) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return c.opts.Dial(ctx, network, address)
}

// resolveHost returns the addresses of a host, which may be a name or an address.
func (c *Client) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	addresses, err := c.opts.LookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	for i, a := range addresses {
		addresses[i] = a.Unmap() // some resolvers return IPv4 addresses as IPv6 addresses
	}
	return addresses, nil
}

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

// The limits of connections to receivers.
const (
	maxIdle        = 1000
	maxIdlePerHost = domain.MaxConcurrency // several receivers may share a host
	maxHeader      = 64 << 10              // bytes of the header of an answer
)

// newTransport returns the transport of all calls, whose connections c.dial
// makes.
func (c *Client) newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // a proxy from the environment would be dialed in place of the receiver
		DialContext:            c.dialHost,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.opts.RootCAs},
		TLSHandshakeTimeout:    c.opts.Timeout,
		ForceAttemptHTTP2:      true, // otherwise off with a custom dialer
		DisableCompression:     true, // so that no answer grows while it is read
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        90 * time.Second,
		// Limits of what a receiver may send before it is read; the default is
		// 4 MB for a stream.
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: maxRead, MaxReceiveBufferPerConnection: 4 * maxRead,
			SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second,
		},
	}
}

// systemDial returns a function that connects to an address, unless the guard refuses it.
func systemDial(g *Guard) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{KeepAlive: 30 * time.Second, Control: g.checkConnect}).DialContext
}

// systemLookUp returns the addresses of a host as the system knows them.
func systemLookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// dialHost connects to the first address of a host that answers and that the
// guard allows. The transport does not cancel it with the call that has started
// it, so it has a separate deadline.
func (c *Client) dialHost(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // Close ends it, too
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

// dialOne connects to one of left addresses that are tried in turn. It uses
// only its share of the time, so that an address that does not answer leaves
// time for the others.
func (c *Client) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return c.opts.Dial(ctx, network, address)
}

// resolveHost returns the addresses of a host, which may itself be an address.
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

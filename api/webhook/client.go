package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Options are the options of a Client. The zero value allows calls to public addresses over HTTPS.
type Options struct {
	Allow     []netip.Prefix // address ranges that may be called, in addition to public addresses
	AllowHTTP bool           // whether URLs without TLS may be called
	Timeout   time.Duration  // time limit of a call, from the look-up to the last byte; default 30 s
	RootCAs   *x509.CertPool // certificate authorities for receivers; default: those of the system

	// Dial and LookUp replace the network in tests. LookUp returns the addresses of a host name.
	// Dial connects to an address that the guard has allowed. Default: the system's network and
	// resolver.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	LookUp func(ctx context.Context, host string) ([]netip.Addr, error)

	Clock func() time.Time // clock for timestamps; default: the system clock
}

// A Client calls receivers. It is safe for concurrent use.
type Client struct {
	opts      Options
	guard     *Guard
	transport transport
	lifetime  context.Context // context of connection attempts; Close ends it
	end       context.CancelFunc
}

// A transport sends one request without following redirects, because a redirect could lead to an
// unregistered host. Only calls to watches follow redirects; see roundTrip.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// New returns a Client, which the caller must close.
func New(opts Options) *Client {
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	c := &Client{opts: opts, guard: NewGuard(opts.Allow...)}
	if opts.Dial == nil {
		c.opts.Dial = systemDial(c.guard)
	}
	if opts.LookUp == nil {
		c.opts.LookUp = systemLookUp
	}
	if opts.Clock == nil {
		c.opts.Clock = time.Now
	}
	c.lifetime, c.end = context.WithCancel(context.Background())
	c.transport = c.newTransport()
	return c
}

// Close closes idle connections. The caller must call it after all calls have ended.
func (c *Client) Close() {
	c.end()
	c.transport.CloseIdleConnections()
}

// Maximum sizes for the body of a response, in bytes.
const (
	MaxBody = 16 << 10 // maximum that is returned
	maxRead = 64 << 10 // maximum that is read, so that the connection can be reused
)

// A Result is the outcome of a call.
type Result struct {
	Answer domain.Answer
	Body   []byte // at most MaxBody bytes of the response's body
}

// Send calls a receiver once. If the call fails, the Answer of the Result contains the reason. Send
// returns an error only if ctx ends. The outcome of the call is then unknown, and the call does not
// count as an attempt.
func (c *Client) Send(ctx context.Context, d *Delivery) (Result, error) {
	return c.SendAltered(ctx, d, func(*http.Request) {})
}

// SendAltered is like Send, but alter changes the signed request. It is used to test how a receiver
// handles requests that are not from the hub. alter must not change the URL, which was already
// checked.
func (c *Client) SendAltered(ctx context.Context, d *Delivery, alter func(*http.Request)) (Result, error) {
	return c.sendCall(ctx, 0, func(ctx context.Context, now time.Time) (*http.Request, error) {
		req, err := c.newRequest(ctx, d, now)
		if err == nil {
			alter(req)
		}
		return req, err
	})
}

// A requestMaker creates the request for a call that starts at the time now.
type requestMaker func(ctx context.Context, now time.Time) (*http.Request, error)

// sendCall makes one call, and follows at most redirects redirects. It returns an error only if ctx
// ends.
func (c *Client) sendCall(ctx context.Context, redirects int, request requestMaker) (Result, error) {
	began, start := c.opts.Clock(), time.Now()
	call, cancel := context.WithTimeoutCause(ctx, c.opts.Timeout, errTimeout)
	defer cancel()
	var connected atomic.Bool
	call = httptrace.WithClientTrace(call, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := c.callOnce(call, began, redirects, request)
	r.Answer.Began, r.Answer.Took = began, time.Since(start)
	if err == nil {
		return r, nil
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	// Connecting has the same time limit as the call, and may exceed it slightly earlier.
	switch isOver := context.Cause(call) != nil || isTimeout(err); {
	case isOver && connected.Load():
		err = errTimeout
	case isOver:
		err = errNoConnection
	}
	r.Answer.Status, r.Answer.Error = 0, failureReason(err, c.opts.Timeout)
	return r, nil
}

// Reasons for cancelling a call that takes too long.
var (
	errTimeout      = errors.New("the time for a call has passed")
	errNoConnection = errors.New("the time for a call has passed before it had a connection")
)

func (c *Client) callOnce(ctx context.Context, now time.Time, redirects int, request requestMaker) (Result, error) {
	req, err := request(ctx, now)
	if err != nil {
		return Result{}, err
	}
	resp, err := c.roundTrip(req, redirects)
	if err != nil {
		return Result{}, err
	}
	defer resp.Body.Close()
	r := Result{Answer: domain.Answer{Status: resp.StatusCode}}
	isSuccess := resp.StatusCode >= 200 && resp.StatusCode <= 299
	if !isSuccess {
		r.Answer.Error = statusReason(resp.StatusCode)
		r.Answer.RetryAfter = retryAfter(resp.Header, c.opts.Clock())
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return r, nil // there is no body, because the connection has changed its protocol
	}
	r.Body, err = readBody(resp.Body)
	if !isSuccess {
		return r, nil // an unsuccessful status counts even if its body is incomplete
	}
	return r, err
}

// readBody returns the first MaxBody bytes of a body. It fails unless the body ends within maxRead
// bytes.
func readBody(body io.Reader) ([]byte, error) {
	kept, err := io.ReadAll(io.LimitReader(body, MaxBody))
	if err != nil {
		return kept, &bodyError{err}
	}
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxRead-MaxBody+1))
	switch {
	case err != nil:
		return kept, &bodyError{err}
	case n > maxRead-MaxBody:
		return kept, errLong
	}
	return kept, nil
}

package hubclient

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A TokenSource returns the token for a request. It is called for each request, and must be safe
// for concurrent use.
type TokenSource func(ctx context.Context) (string, error)

// Options are the options of a Client. URL is required.
type Options struct {
	URL string // URL of the hub, such as https://hub.example.org. A user and password in the URL are sent if Token is nil.

	// Token returns the token of the caller. Default: no token. A hub without an issuer needs none,
	// and trusts the actor id in a request.
	Token TokenSource

	// TLS contains the accepted certificate authorities and the client certificate. Default: the
	// authorities of the system, and no client certificate.
	TLS *tls.Config
	// Transport, if not nil, sends the requests instead of TLS. It must not decompress bodies.
	Transport http.RoundTripper

	// Budget is how long a failed request is repeated, measured from its first attempt. Default: 1
	// minute. If negative, no request is repeated.
	Budget time.Duration
	// Resume is how long the client tries to resume an interrupted download, measured from the last
	// received data. Default: 1 minute. If negative, no download is resumed.
	Resume time.Duration
	// OnRetry, if not nil, is called before a failed request or a failed handling of a bundle is
	// repeated after a pause. If it returns false, the operation fails with err. It must be safe
	// for concurrent use.
	OnRetry func(err error, pause time.Duration) bool
	// Timeout is the maximum time without received data. Default: 40 seconds, which is longer than
	// a hub needs for a response.
	Timeout time.Duration
	// MaxBundle is the maximum size of the body of a bundle in bytes. Default: 1 GB.
	MaxBundle int64

	Clock Clock // default: the system clock
	// Jitter returns random numbers in [0, 1), which vary the pauses. It must be safe for
	// concurrent use.
	Jitter func() float64
	// NewID returns new UUIDs for bundles. It must be safe for concurrent use. Default: random
	// UUIDs.
	NewID func() string
}

const (
	defaultBudget    = time.Minute
	defaultTimeout   = 40 * time.Second
	defaultMaxBundle = 1 << 30
	idleConnections  = 64
	maxResponse      = 8 << 20 // maximum size in bytes of a response that is not a bundle
)

// A Client sends requests to a hub. It is safe for concurrent use.
type Client struct {
	opts Options
	base *url.URL
	user *url.Userinfo
	http *http.Client
}

// errURL reports an invalid URL. It does not contain the URL, which may contain a password.
var errURL = errors.New("hubclient: want the URL of a hub, such as https://hub.example.org")

// New returns a Client without sending a request.
func New(opts Options) (*Client, error) {
	base, err := url.Parse(opts.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" {
		return nil, errURL
	}
	c := &Client{base: base, user: base.User}
	base.User = nil
	if opts.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = idleConnections
		t.DisableCompression = true // an interrupted download is resumed at a byte position of the uncompressed body
		if opts.TLS != nil {
			t.TLSClientConfig = opts.TLS
		}
		opts.Transport = t
	}
	if opts.Clock == nil {
		opts.Clock = monotonicClock{time.Now()}
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	if opts.NewID == nil {
		opts.NewID = newUUID
	}
	opts.Budget = cmp.Or(opts.Budget, defaultBudget)
	opts.Resume = cmp.Or(opts.Resume, defaultBudget)
	opts.Timeout = cmp.Or(opts.Timeout, defaultTimeout)
	opts.MaxBundle = cmp.Or(opts.MaxBundle, defaultMaxBundle)
	c.opts = opts
	c.http = &http.Client{
		Transport:     opts.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// newUUID returns a random UUID of version 4 (RFC 9562).
func newUUID() string {
	var id [16]byte
	_, _ = crand.Read(id[:]) // crypto/rand.Read never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// With returns a copy of c with changed options. The copy shares the connections of c, so changes
// of URL, TLS and Transport have no effect.
func (c *Client) With(change func(*Options)) *Client {
	other := *c
	change(&other.opts)
	return &other
}

// URL returns the URL of the hub, without a trailing slash and without a user.
func (c *Client) URL() string { return strings.TrimRight(c.base.String(), "/") }

// HTTP returns the HTTP client that sends the requests. It adds no token to a request.
func (c *Client) HTTP() *http.Client { return c.http }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NewRequest returns a request to a route of the hub, for [Client.Send]. path begins with a slash
// and may contain a query. A body that is not nil has the content type JSON. If actor is "", the
// header X-Actor-Id is not set.
func (c *Client) NewRequest(ctx context.Context, method, path, actor string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	token := ""
	if c.opts.Token != nil {
		if token, err = c.opts.Token(ctx); err != nil {
			return nil, &tokenError{err}
		}
	}
	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
	case c.user != nil:
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	return req, nil
}

// A tokenError reports that a TokenSource failed.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "hubclient: get a token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// Send sends a request once. It fails with a [*Problem] if the status is not 2xx. Otherwise the
// caller must close the body of the response.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, ReadProblem(resp)
}

// errSilent is the cause of cancelling a request for which no data arrives.
var errSilent = errors.New("hubclient: nothing has arrived in time")

// A connection is a response whose request is cancelled if no data arrives for Options.Timeout.
type connection struct {
	*http.Response

	client *Client
	cancel context.CancelCauseFunc
	ctx    context.Context
}

// startRequest sends a request once and waits for the header of its response, for up to
// Options.Timeout plus wait. The caller must close the connection.
func (c *Client) startRequest(ctx context.Context, method, path, actor string, body []byte, header http.Header, wait time.Duration) (*connection, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := c.opts.Clock.AfterFunc(c.opts.Timeout+wait, func() { cancel(errSilent) })
	defer stop()
	resp, err := c.sendOnce(ctx, method, path, actor, body, header) //nolint:bodyclose // the connection closes it
	if err != nil {
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	return &connection{resp, c, cancel, ctx}, nil
}

func (c *Client) sendOnce(ctx context.Context, method, path, actor string, body []byte, header http.Header) (*http.Response, error) {
	req, err := c.NewRequest(ctx, method, path, actor, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	return c.Send(req)
}

// Read reads the body of the response.
func (c *connection) Read(p []byte) (int, error) {
	stop := c.client.opts.Clock.AfterFunc(c.client.opts.Timeout, func() { c.cancel(errSilent) })
	defer stop()
	n, err := c.Body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a Reader returns it itself
		err = causeOf(c.ctx, err)
	}
	return n, err
}

func (c *connection) close() {
	c.cancel(nil)
	_ = c.Body.Close() // the rest of the body is not read
}

// causeOf returns errSilent if ctx ended because of errSilent. Otherwise it returns err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return cause
	}
	return err
}

// sendRepeatedly sends a request and returns the body of its response. It repeats the request after
// temporary failures.
func (c *Client) sendRepeatedly(ctx context.Context, method, path, actor string, body []byte) (answer []byte, err error) {
	err = c.repeatUntilDone(ctx, c.opts.Budget, func() error {
		answer, err = c.fetchResponse(ctx, method, path, actor, body)
		return err
	})
	return answer, err
}

// fetchResponse sends a request once and returns the body of its response.
func (c *Client) fetchResponse(ctx context.Context, method, path, actor string, body []byte) ([]byte, error) {
	conn, err := c.startRequest(ctx, method, path, actor, body, nil, 0)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	answer, err := io.ReadAll(io.LimitReader(conn, maxResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("hubclient: the answer broke off: %w", err)
	case len(answer) > maxResponse:
		return nil, &Problem{Status: conn.StatusCode, Title: "The answer is too long", Detail: fmt.Sprintf("Want up to %d bytes.", maxResponse)}
	}
	return answer, nil
}

package hubclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// DefaultURL is the address of a hub on this machine with its default settings.
const DefaultURL = "http://127.0.0.1:8080"

// DefaultAdminURL is the address of its listener for operators.
const DefaultAdminURL = "http://127.0.0.1:8081"

// A Client sends requests to the /v1 routes of a hub. It is safe for concurrent use.
type Client struct {
	Base  string // of every URL, without a slash at the end, and without a user
	Token string // of an operator or of an issuer, which every request carries; "": none

	// TokenOf, if it is set, returns the token of a request in place of Token: that of an actor or, for
	// "", of the others. It is set before the first request.
	TokenOf func(actor string) string

	user *url.Userinfo // for a proxy in front of the hub; nil: none
	http *http.Client
}

// New returns a client of the hub with the URL base. It makes no request.
func New(base string) (*Client, error) { return NewWithTLS(base, nil) }

// NewWithTLS returns a client that has certificates, nil for those of the system.
func NewWithTLS(base string, secured *tls.Config) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		shown, _ := config.Redact(base)
		return nil, fmt.Errorf("--url: want the address of a hub such as %s, got %q", DefaultURL, shown)
	}
	user := u.User
	u.User = nil
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	if secured != nil {
		transport.TLSClientConfig = secured
	}
	transport.DisableCompression = true // a download that broke off goes on by bytes of the body as it is
	return &Client{Base: strings.TrimRight(u.String(), "/"), user: user, http: &http.Client{Transport: transport}}, nil
}

// IsPrivate reports whether the requests of the client cannot be read on the network.
func (c *Client) IsPrivate() bool { return strings.HasPrefix(c.Base, "https:") || c.IsLocal() }

// IsLocal reports whether the hub is on this machine.
func (c *Client) IsLocal() bool {
	u, err := url.Parse(c.Base)
	return err == nil && loopback.IsDestination(u.Hostname())
}

// Close closes the connections that no request uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// RefuseRedirects keeps the client from sending a request, and its token, elsewhere.
func (c *Client) RefuseRedirects() {
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

// HTTP returns what sends the requests.
func (c *Client) HTTP() *http.Client { return c.http }

// Do makes a request and sends it, as [Client.Send] does.
func (c *Client) Do(ctx context.Context, method, path, actor string, body []byte) (*http.Response, error) {
	req, err := c.Request(ctx, method, path, actor, body)
	if err != nil {
		return nil, err
	}
	return c.Send(req)
}

// Request returns a request for [Client.Send]. Without a body it has no content type, and
// without an actor none is named.
func (c *Client) Request(ctx context.Context, method, path, actor string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	token := c.Token
	if c.TokenOf != nil {
		token = c.TokenOf(actor)
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

// Send sends a request. It fails with a *Problem if the status is not 2xx. Otherwise the caller
// closes the body of the response.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.Unreachable(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readProblem(resp)
}

// Unreachable returns the error of a request without a complete answer, in one line that
// says what to do.
func (c *Client) Unreachable(err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no hub listens at %s; start one with messagehub serve, or name another with --url (%w)", c.Base, err)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("cannot find %s; check --url (%w)", dns.Name, err)
	}
	return fmt.Errorf("no answer from the hub at %s: %w", c.Base, err)
}

// A Problem is the answer of a hub to a request that fails.
type Problem struct { //nolint:errname // problem is the word of RFC 9457
	Status     int    `json:"status"`
	Title      string `json:"title"`
	Detail     string `json:"detail"`
	Instance   string `json:"instance"`
	Errors     []Fault
	Accepted   *int `json:"accepted"`   // only where some events were stored
	Duplicates *int `json:"duplicates"` // likewise

	RetryAfter time.Duration `json:"-"` // -1: the answer has none
}

// A Fault is what is wrong at one place of the body of a request.
type Fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail)
	if id := strings.TrimPrefix(p.Instance, "urn:messagehub:request:"); id != "" && p.Status >= 500 {
		text += " Request " + id + "."
	}
	return text
}

// IsTemporary reports whether the same request may succeed later.
func (p *Problem) IsTemporary() bool {
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func readProblem(resp *http.Response) error {
	const most = 8 << 20
	p := &Problem{RetryAfter: -1}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || json.Unmarshal(body, p) != nil {
		p.Detail = fmt.Sprintf("The answer is no problem document; is this a hub? It begins %q.", body[:min(len(body), 80)])
	}
	p.Status = resp.StatusCode
	p.Title = cmp.Or(p.Title, http.StatusText(resp.StatusCode))
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

package hubclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// DefaultURL is the URL of a hub on this machine with its default settings.
const DefaultURL = "http://127.0.0.1:8080"

// DefaultAdminURL is the URL of its listener for operators.
const DefaultAdminURL = "http://127.0.0.1:8081"

// Announced is the type of the public client.
type Announced = hubclient.Announced

// Fault is the type of the public client.
type Fault = hubclient.Fault

// PeekOptions is the type of the public client.
type PeekOptions = hubclient.PeekOptions

// Problem is that of the public client.
type Problem = hubclient.Problem //nolint:errname // problem is the word of RFC 9457

// A Client sends requests to the /v1 routes of a hub. It is safe for concurrent use.
type Client struct {
	Base  string // prefix of every URL, without a slash at the end, and without a user
	Token string // token of an operator or of an issuer, which every request has; "": none

	// TokenOf, if it is set, returns the token of a request in place of Token:
	// the token of an actor or, for "", of other users. It is set before the
	// first request.
	TokenOf func(actor string) string

	client *hubclient.Client
}

// New returns a client of the hub with the URL base. It makes no request.
func New(base string) (*Client, error) { return NewWithTLS(base, nil) }

// NewWithTLS returns a client with the given certificates, nil for those of the
// system.
func NewWithTLS(base string, secured *tls.Config) (*Client, error) {
	// The client repeats no request: the commands do, and report it. A download
	// is resumed until the timeout of its command.
	client, err := hubclient.New(hubclient.Options{URL: base, TLS: secured, Budget: -1, Resume: maxResume})
	if err != nil {
		shown, _ := config.Redact(base)
		return nil, fmt.Errorf("--url: want the address of a hub such as %s, got %q", DefaultURL, shown)
	}
	return &Client{Base: client.URL(), client: client}, nil
}

const maxResume = 24 * time.Hour

// IsPrivate reports whether others on the network cannot read the requests of
// the client.
func (c *Client) IsPrivate() bool { return strings.HasPrefix(c.Base, "https:") || c.IsLocal() }

// IsLocal reports whether the hub is on this machine.
func (c *Client) IsLocal() bool {
	u, err := url.Parse(c.Base)
	return err == nil && loopback.IsDestination(u.Hostname())
}

// Close closes idle connections.
func (c *Client) Close() { c.client.Close() }

// HTTP returns the client that sends the requests.
func (c *Client) HTTP() *http.Client { return c.client.HTTP() }

// As returns the public client with the token of an actor or, for "", of other
// users. Its requests fail with errors for programs; [Client.ExplainError]
// turns them into errors for a person.
func (c *Client) As(actor string) *hubclient.Client {
	token := c.Token
	if c.TokenOf != nil {
		token = c.TokenOf(actor)
	}
	return c.client.With(func(o *hubclient.Options) {
		o.Token = func(context.Context) (string, error) { return token, nil }
	})
}

// Do makes a request and sends it, as [Client.Send] does.
func (c *Client) Do(ctx context.Context, method, path, actor string, body []byte) (*http.Response, error) {
	req, err := c.Request(ctx, method, path, actor, body)
	if err != nil {
		return nil, err
	}
	return c.Send(req)
}

// Request returns a request for [Client.Send]. Without a body it has no content
// type, and without an actor no header X-Actor-Id.
func (c *Client) Request(ctx context.Context, method, path, actor string, body []byte) (*http.Request, error) {
	return c.As(actor).NewRequest(ctx, method, path, actor, body)
}

// Send sends a request. It fails with a *Problem if the status is not 2xx. Otherwise the caller
// closes the body of the response.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Send(req)
	return resp, c.ExplainError(err)
}

// ExplainError returns the error of a request for a person: an error of the hub
// unchanged, others as [Client.Unreachable] does.
func (c *Client) ExplainError(err error) error {
	if refused, ok := errors.AsType[*Problem](err); ok {
		return refused
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return c.Unreachable(inner)
	}
	return err
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

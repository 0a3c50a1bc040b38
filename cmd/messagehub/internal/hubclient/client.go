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

// DefaultAdminURL is the URL of the operators' listener of a hub on this machine
// with its default settings.
const DefaultAdminURL = "http://127.0.0.1:8081"

// Announced is the type Announced of the public client.
type Announced = hubclient.Announced

// Fault is the type Fault of the public client.
type Fault = hubclient.Fault

// PeekOptions is the type PeekOptions of the public client.
type PeekOptions = hubclient.PeekOptions

// Problem is the type Problem of the public client.
type Problem = hubclient.Problem //nolint:errname // problem is the word of RFC 9457

// A Client sends requests to the /v1 routes of a hub. It is safe for concurrent use.
type Client struct {
	Base  string // prefix of every URL, without a trailing slash and without a user
	Token string // sent with every request: an operator's token, or a token from an issuer; "": no token

	// TokenOf, if set, replaces Token: it returns the token for requests of an
	// actor or, if actor is "", for all other requests. It must be set before the
	// first request.
	TokenOf func(actor string) string

	client *hubclient.Client
}

// New returns a client of the hub with the URL base. It makes no request.
func New(base string) (*Client, error) { return NewWithTLS(base, nil) }

// NewWithTLS is New with the certificates in secured; nil stands for the
// certificates of the system.
func NewWithTLS(base string, secured *tls.Config) (*Client, error) {
	// The client does not repeat requests, because the commands repeat them
	// and report each repetition. It resumes a download until the timeout of
	// the command.
	client, err := hubclient.New(hubclient.Options{URL: base, TLS: secured, Budget: -1, Resume: maxResume})
	if err != nil {
		shown, _ := config.Redact(base)
		return nil, fmt.Errorf("--url: want the address of a hub such as %s, got %q", DefaultURL, shown)
	}
	return &Client{Base: client.URL(), client: client}, nil
}

const maxResume = 24 * time.Hour

// IsPrivate reports whether the requests of the client are encrypted, or do not
// leave this machine.
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

// As returns a public client that sends the token for requests of an actor or, if
// actor is "", the token for all other requests. The errors of the public client
// are for programs; [Client.ExplainError] turns them into errors for a person.
func (c *Client) As(actor string) *hubclient.Client {
	token := c.Token
	if c.TokenOf != nil {
		token = c.TokenOf(actor)
	}
	return c.client.With(func(o *hubclient.Options) {
		o.Token = func(context.Context) (string, error) { return token, nil }
	})
}

// Do creates a request with [Client.Request] and sends it with [Client.Send].
func (c *Client) Do(ctx context.Context, method, path, actor string, body []byte) (*http.Response, error) {
	req, err := c.Request(ctx, method, path, actor, body)
	if err != nil {
		return nil, err
	}
	return c.Send(req)
}

// Request returns a request for [Client.Send]. A request without a body has no
// content type, and a request without an actor has no header X-Actor-Id.
func (c *Client) Request(ctx context.Context, method, path, actor string, body []byte) (*http.Request, error) {
	return c.As(actor).NewRequest(ctx, method, path, actor, body)
}

// Send sends a request. It fails with a *Problem if the status is not 2xx. If it succeeds, the caller
// must close the body of the response.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Send(req)
	return resp, c.ExplainError(err)
}

// ExplainError returns the error of a request as an error for a person. It returns
// a *Problem unchanged, and passes other errors to [Client.Unreachable].
func (c *Client) ExplainError(err error) error {
	if refused, ok := errors.AsType[*Problem](err); ok {
		return refused
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return c.Unreachable(inner)
	}
	return err
}

// Unreachable returns the error of a request without a complete response: one line
// that says what to do.
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

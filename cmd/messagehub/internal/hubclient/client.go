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

// DefaultURL is the URL of a local hub with default settings.
const DefaultURL = "http://127.0.0.1:8080"

// DefaultAdminURL is the URL of the operators' listener of a local hub with
// default settings.
const DefaultAdminURL = "http://127.0.0.1:8081"

// Announced is the public client's type Announced.
type Announced = hubclient.Announced

// Fault is the public client's type Fault.
type Fault = hubclient.Fault

// PeekOptions is the public client's type PeekOptions.
type PeekOptions = hubclient.PeekOptions

// Problem is the public client's type Problem.
type Problem = hubclient.Problem //nolint:errname // problem is the word of RFC 9457

// A Client sends requests to the /v1 routes of a hub. It is safe for concurrent use.
type Client struct {
	Base  string // prefix of every URL, without a trailing slash and without user information
	Token string // sent with every request: an operator's token, or a token from an issuer; "": no token

	// TokenOf, if set, replaces Token. It returns the token for the requests of
	// an actor; for "", it returns the token for requests without an actor. It
	// must be set before the first request.
	TokenOf func(actor string) string

	client *hubclient.Client
}

// New returns a client for the hub at the URL base. It sends no request.
func New(base string) (*Client, error) { return NewWithTLS(base, nil) }

// NewWithTLS is New with a TLS configuration; nil selects the system's
// certificates.
func NewWithTLS(base string, secured *tls.Config) (*Client, error) {
	// The client does not repeat requests, because the commands repeat them and
	// report each repetition. It resumes an interrupted download until the
	// command's timeout.
	client, err := hubclient.New(hubclient.Options{URL: base, TLS: secured, Budget: -1, Resume: maxResume})
	if err != nil {
		shown, _ := config.Redact(base)
		return nil, fmt.Errorf("--url: want the address of a hub such as %s, got %q", DefaultURL, shown)
	}
	return &Client{Base: client.URL(), client: client}, nil
}

const maxResume = 24 * time.Hour

// IsPrivate reports whether the client's requests are encrypted or stay on this
// machine.
func (c *Client) IsPrivate() bool { return strings.HasPrefix(c.Base, "https:") || c.IsLocal() }

// IsLocal reports whether the hub is on this machine.
func (c *Client) IsLocal() bool {
	u, err := url.Parse(c.Base)
	return err == nil && loopback.IsDestination(u.Hostname())
}

// Close closes idle connections.
func (c *Client) Close() { c.client.Close() }

// HTTP returns the underlying HTTP client.
func (c *Client) HTTP() *http.Client { return c.client.HTTP() }

// As returns a client of package api/hubclient that uses the actor's token or,
// if actor is "", the token for requests without an actor. The errors of this
// client are for programs; [Client.ExplainError] turns them into errors for a
// person.
func (c *Client) As(actor string) *hubclient.Client {
	token := c.Token
	if c.TokenOf != nil {
		token = c.TokenOf(actor)
	}
	return c.client.With(func(o *hubclient.Options) {
		o.Token = func(context.Context) (string, error) { return token, nil }
	})
}

// Do sends the request that [Client.Request] creates, with [Client.Send].
func (c *Client) Do(ctx context.Context, method, path, actor string, body []byte) (*http.Response, error) {
	req, err := c.Request(ctx, method, path, actor, body)
	if err != nil {
		return nil, err
	}
	return c.Send(req)
}

// Request returns a request for [Client.Send]. It sets a content type only if
// there is a body, and the header X-Actor-Id only if there is an actor.
func (c *Client) Request(ctx context.Context, method, path, actor string, body []byte) (*http.Request, error) {
	return c.As(actor).NewRequest(ctx, method, path, actor, body)
}

// Send sends a request. It fails with a *Problem if the status is not 2xx. If
// Send succeeds, the caller must close the body of the response.
func (c *Client) Send(req *http.Request) (*http.Response, error) {
	resp, err := c.client.Send(req)
	return resp, c.ExplainError(err)
}

// ExplainError turns the error of a request into an error for a person. It
// returns a *Problem unchanged, and passes any other error to
// [Client.Unreachable].
func (c *Client) ExplainError(err error) error {
	if refused, ok := errors.AsType[*Problem](err); ok {
		return refused
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return c.Unreachable(inner)
	}
	return err
}

// Unreachable turns the error of a request without a complete response into one
// line that says what to do.
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

package main

import (
	"bytes"
	"cmp"
	"context"
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

const defaultURL = "http://127.0.0.1:8080"

// A client speaks the /v1 routes of a hub.
type client struct {
	base  string        // without a slash at the end, and without a user
	user  *url.Userinfo // for a proxy in front of the hub; nil: none
	token string        // of an operator; "" if none exists
	http  *http.Client
}

// newClient accepts the address of a hub.
func newClient(base string) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		shown, _ := config.Redact(base)
		return nil, fmt.Errorf("--url: want the address of a hub such as %s, got %q", defaultURL, shown)
	}
	user := u.User
	u.User = nil
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true // a download that broke off goes on by bytes of the body as it is
	return &client{base: strings.TrimRight(u.String(), "/"), user: user, http: &http.Client{Transport: transport}}, nil
}

// isPrivate reports whether the requests of the client cannot be read on the network.
func (c *client) isPrivate() bool { return strings.HasPrefix(c.base, "https:") || c.isLocal() }

// isLocal reports whether the hub is on this machine.
func (c *client) isLocal() bool {
	u, err := url.Parse(c.base)
	return err == nil && loopback.IsDestination(u.Hostname())
}

func (c *client) close() { c.http.CloseIdleConnections() }

// do sends a request. An answer that is no success is a *problem.
func (c *client) do(ctx context.Context, method, path, actor string, body []byte) (*http.Response, error) {
	req, err := c.request(ctx, method, path, actor, body)
	if err != nil {
		return nil, err
	}
	return c.send(req)
}

func (c *client) request(ctx context.Context, method, path, actor string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	switch {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case c.user != nil:
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	return req, nil
}

func (c *client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readProblem(resp)
}

// unreachable says in one line what is wrong, and whether anybody listens.
func (c *client) unreachable(err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no hub listens at %s; start one with messagehub serve, or name another with --url (%w)", c.base, err)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("cannot find %s; check --url (%w)", dns.Name, err)
	}
	return fmt.Errorf("no answer from the hub at %s: %w", c.base, err)
}

// A problem is what a hub answers when something is not right.
type problem struct {
	Status     int    `json:"status"`
	Title      string `json:"title"`
	Detail     string `json:"detail"`
	Instance   string `json:"instance"`
	Errors     []fault
	Accepted   *int `json:"accepted"`   // only where some events were stored
	Duplicates *int `json:"duplicates"` // likewise

	retryAfter time.Duration // -1: the hub does not say
}

type fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

func (p *problem) Error() string {
	text := fmt.Sprintf("%s (%d): %s", p.Title, p.Status, p.Detail)
	if id := strings.TrimPrefix(p.Instance, "urn:messagehub:request:"); id != "" && p.Status >= 500 {
		text += " Request " + id + "."
	}
	return text
}

// passing reports whether the same request may succeed later.
func (p *problem) passing() bool {
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func readProblem(resp *http.Response) error {
	const most = 8 << 20
	p := &problem{retryAfter: -1}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || json.Unmarshal(body, p) != nil {
		p.Detail = fmt.Sprintf("The answer is no problem document; is this a hub? It begins %q.", body[:min(len(body), 80)])
	}
	p.Status = resp.StatusCode
	p.Title = cmp.Or(p.Title, http.StatusText(resp.StatusCode))
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		p.retryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

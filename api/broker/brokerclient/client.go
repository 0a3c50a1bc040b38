package brokerclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
)

// Credentials are the tokens that a [Client] uses. Each request contains only the tokens that it
// requires.
type Credentials struct {
	AdminToken    string // token of the hub's operators
	ChannelToken  string
	ProducerID    string
	ProducerToken string
	ConsumerToken string
}

// Options are the options of a Client.
type Options struct {
	URL         string // URL of the hub, such as https://hub.example.org (required)
	Credentials Credentials

	// HTTP sends the requests. Its redirect policy is replaced, because the Client does not follow
	// redirects. Default: a client with a time limit of 30 seconds for each request.
	HTTP *http.Client

	// Budget limits the total time of a request and its repetitions. Default: 1 minute. A negative
	// Budget disables repetitions.
	Budget time.Duration
	// Jitter returns random numbers in [0, 1), which vary the pauses between repetitions. It must
	// be safe for concurrent use.
	Jitter func() float64

	// PageSize is the number of elements in one page of a list, up to 100. Default: 100.
	PageSize int
}

// A Client sends requests to the broker of a hub. It is safe for concurrent use.
type Client struct {
	opts Options
	base *url.URL
	http *http.Client
}

const (
	defaultTimeout  = 30 * time.Second
	defaultBudget   = time.Minute
	defaultPageSize = 100
	idleConnections = 64
	maxAnswer       = 64 << 20 // bytes
)

// New returns a Client. It sends no request.
func New(opts Options) (*Client, error) {
	base, err := url.Parse(opts.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("brokerclient: want the URL of a hub, such as https://hub.example.org")
	}
	if opts.HTTP == nil {
		opts.HTTP = &http.Client{Timeout: defaultTimeout}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			t = t.Clone()
			t.MaxIdleConnsPerHost = idleConnections
			opts.HTTP.Transport = t
		}
	}
	if opts.Jitter == nil {
		opts.Jitter = rand.Float64
	}
	opts.Budget = cmp.Or(opts.Budget, defaultBudget)
	opts.PageSize = cmp.Or(opts.PageSize, defaultPageSize)
	client := *opts.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{opts: opts, base: base, http: &client}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Names of request headers.
const (
	adminTokenHeader    = "X-Broker-Admin-Token" //nolint:gosec // a name
	channelTokenHeader  = "X-Broker-Channel-Token"
	producerIDHeader    = "X-Broker-Producer-ID"
	producerTokenHeader = "X-Broker-Producer-Token"
	consumerTokenHeader = "X-Broker-Consumer-Token"
	priorityHeader      = "X-Broker-Message-Priority"
	messageIDHeader     = "X-Broker-Message-ID"
	metadataHeader      = "X-Broker-Metadata-Headers"
)

// An apiCall is a request that may be sent several times.
type apiCall struct {
	method string
	path   []string // unescaped segments of the path after /broker
	query  url.Values
	header http.Header
	body   []byte

	isOnce bool // whether to repeat the request only if the hub has certainly not begun it
}

// An apiAnswer is the response to a successful request.
type apiAnswer struct {
	status int
	header http.Header
	body   []byte
}

// decodeBody decodes the body of a response.
func (a *apiAnswer) decodeBody(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("the answer of the hub cannot be read: %w", err)
	}
	return nil
}

// asAdmin returns headers with the token of the operators.
func (c *Client) asAdmin() http.Header {
	return newHeader(adminTokenHeader, c.opts.Credentials.AdminToken)
}

// asReader returns headers with the tokens for reading a channel.
func (c *Client) asReader() http.Header {
	if c.opts.Credentials.AdminToken != "" {
		return c.asAdmin()
	}
	return newHeader(channelTokenHeader, c.opts.Credentials.ChannelToken)
}

// asConsumer returns headers with the tokens for acting as a consumer.
func (c *Client) asConsumer() http.Header {
	if c.opts.Credentials.AdminToken != "" {
		return c.asAdmin()
	}
	return newHeader(consumerTokenHeader, c.opts.Credentials.ConsumerToken)
}

// newHeader returns headers with one name and value. If the value is empty, it returns no headers.
func newHeader(name, value string) http.Header {
	h := make(http.Header)
	setUnlessEmpty(h, name, value)
	return h
}

func setUnlessEmpty(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// sendRepeatedly sends a request, and repeats it after temporary failures.
func (c *Client) sendRepeatedly(ctx context.Context, r *apiCall) (*apiAnswer, error) {
	for _, segment := range r.path {
		if segment == "" || segment == "." || segment == ".." {
			return nil, fmt.Errorf("brokerclient: want an id, got %q", segment)
		}
	}
	return c.repeatUntilDone(ctx, r.isOnce, func() (*apiAnswer, error) { return c.sendOnce(ctx, r) })
}

// sendOnce sends a request once.
func (c *Client) sendOnce(ctx context.Context, r *apiCall) (*apiAnswer, error) {
	path := make([]string, 0, len(r.path)+1)
	path = append(path, "broker")
	for _, segment := range r.path {
		path = append(path, url.PathEscape(segment))
	}
	u := c.base.JoinPath(path...)
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, hubclient.ReadProblem(resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer of the hub is not complete: %w", err)
	case len(body) > maxAnswer:
		return nil, &Problem{Status: resp.StatusCode, Title: "The answer is too long", Detail: fmt.Sprintf("want at most %d bytes", maxAnswer)}
	}
	return &apiAnswer{resp.StatusCode, resp.Header, body}, nil
}

// listPages returns the elements of a list, which it fetches page by page. member is the name of
// the array in a page.
func listPages[T any](ctx context.Context, c *Client, r apiCall, member string) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		query := url.Values{"size": {strconv.Itoa(c.opts.PageSize)}}
		for name, values := range r.query {
			query[name] = values
		}
		for {
			r.query = query
			elements, next, err := fetchPage[T](ctx, c, &r, member)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range elements {
				if !yield(&elements[i], nil) {
					return
				}
			}
			if next == nil {
				return
			}
			if next.Encode() == query.Encode() {
				yield(nil, fmt.Errorf("the answer of the hub cannot be read: a page of %s is followed by itself", member))
				return
			}
			query = next
		}
	}
}

// fetchPage returns the elements of a page, and the query of the next page. On the last page, the
// query is nil.
func fetchPage[T any](ctx context.Context, c *Client, r *apiCall, member string) (elements []T, next url.Values, err error) {
	a, err := c.sendRepeatedly(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	var page map[string]json.RawMessage
	if err := a.decodeBody(&page); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(page[member], &elements); err != nil {
		return nil, nil, fmt.Errorf("the answer of the hub cannot be read: %s: %w", member, err)
	}
	if page["next"] == nil {
		return elements, nil, nil
	}
	var link string
	if err := json.Unmarshal(page["next"], &link); err != nil {
		return nil, nil, fmt.Errorf("the answer of the hub cannot be read: next: %w", err)
	}
	// Only the query of the link is used. A different path could send the request's token to a
	// different route.
	u, err := url.Parse(link)
	if err != nil {
		return nil, nil, fmt.Errorf("the answer of the hub cannot be read: next: %w", err)
	}
	return elements, u.Query(), nil
}

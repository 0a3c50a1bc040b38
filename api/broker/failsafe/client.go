package failsafe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Client is the Hub at an address. It is safe for concurrent use.
type Client struct {
	do    func(*http.Request) (*http.Response, error)
	base  string
	token string
}

// NewClient returns a client of the hub at the URL base, for which token is that of the operators. do
// sends a request and returns its answer; it follows no redirect, which might lead the token elsewhere.
func NewClient(base, token string, do func(*http.Request) (*http.Response, error)) *Client {
	return &Client{do: do, base: strings.TrimSuffix(base, "/"), token: token}
}

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 1 << 20
	maxDetail      = 1 << 10 // bytes of the answer to a request that failed
)

const overduePath = "/broker/overdue?"

// Overdue implements [Hub].
func (c *Client) Overdue(ctx context.Context, delay time.Duration, page string) (Page, error) {
	if page == "" {
		page = overduePath + url.Values{"delay": {delay.String()}}.Encode()
	}
	var answer struct {
		Jobs []struct {
			Retrigger string `json:"retriggerUrl"`
		} `json:"jobs"`
		Next string `json:"next"`
	}
	err := c.send(ctx, http.MethodGet, page, func(body io.Reader) error {
		return json.NewDecoder(body).Decode(&answer)
	})
	if err != nil {
		return Page{}, fmt.Errorf("list overdue jobs: %w", err)
	}
	p := Page{Next: answer.Next}
	for _, j := range answer.Jobs {
		p.Jobs = append(p.Jobs, Job{j.Retrigger})
	}
	return p, nil
}

// Retrigger implements [Hub].
func (c *Client) Retrigger(ctx context.Context, job Job) error {
	if err := c.send(ctx, http.MethodPost, job.Retrigger, func(io.Reader) error { return nil }); err != nil {
		return fmt.Errorf("re-trigger a job: %w", err)
	}
	return nil
}

// send sends a request to a path of the broker, and has read read the answer if that is a success.
func (c *Client) send(ctx context.Context, method, path string, read func(io.Reader) error) error {
	if !strings.HasPrefix(path, "/broker/") {
		return domain.Errorf(domain.Unknown, "%s answered with the path %q, which is none of the broker", c.base, domain.Clip(path))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("X-Broker-Admin-Token", c.token)
	req.Header.Set("User-Agent", "messagehub-fail-safe")
	resp, err := c.do(req)
	if err != nil {
		return domain.Errorf(domain.Unavailable, "the hub does not answer: %w", err)
	}
	defer resp.Body.Close()
	body := io.LimitReader(resp.Body, maxAnswer)
	if resp.StatusCode/100 == 2 {
		if err := read(body); err != nil {
			return domain.Errorf(domain.Unavailable, "read the answer of %s: %w", c.base, err)
		}
		_, _ = io.Copy(io.Discard, body) // so that the connection is used again
		return nil
	}
	return c.failure(resp, body)
}

// failure returns what an answer says that is no success.
func (c *Client) failure(resp *http.Response, body io.Reader) error {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return domain.Errorf(domain.Unavailable, "%s refuses the token of the operators with status %d; all nodes behind the address need the same admin.token", c.base, resp.StatusCode)
	case http.StatusNotFound:
		return domain.Errorf(domain.NotFound, "%s: status 404: %s", c.base, detailOf(body))
	case http.StatusConflict:
		return domain.Errorf(domain.Conflict, "%s: status 409: %s", c.base, detailOf(body))
	case http.StatusBadRequest:
		return domain.Errorf(domain.Invalid, "%s: status 400: %s", c.base, detailOf(body))
	}
	if resp.StatusCode/100 == 3 {
		return domain.Errorf(domain.Unavailable, "%s redirects to %q; set broker.retrigger-url to the address that serves the broker", c.base, domain.Clip(resp.Header.Get("Location")))
	}
	err := domain.Errorf(domain.Unavailable, "%s: status %d: %s", c.base, resp.StatusCode, detailOf(body))
	if seconds, perr := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); perr == nil {
		return &WaitError{err, time.Duration(seconds) * time.Second} //nolint:gosec // 16 bits
	}
	return err
}

// detailOf returns the detail of a problem.
func detailOf(body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(body, maxDetail))
	var problem struct{ Detail string }
	if json.Unmarshal(text, &problem) == nil && problem.Detail != "" {
		return domain.Clip(problem.Detail)
	}
	return domain.Clip(string(text))
}

package failsafe

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/domain"
)

// A Client implements Hub with a client of the broker's API. That client must have the operator
// token, and must not repeat requests, because the worker does.
type Client struct{ broker *brokerclient.Client }

// NewClient returns a Hub that sends its requests through c.
func NewClient(c *brokerclient.Client) *Client { return &Client{c} }

// Overdue implements [Hub].
func (c *Client) Overdue(ctx context.Context, delay time.Duration, page string) (Page, error) {
	found, err := c.broker.Overdue(ctx, delay, page)
	if err != nil {
		return Page{}, classify("list overdue jobs", err)
	}
	p := Page{Next: found.Next}
	for i := range found.Jobs {
		j := &found.Jobs[i]
		p.Jobs = append(p.Jobs, Job{j.Channel, j.Message, j.Consumer})
	}
	return p, nil
}

// Retrigger implements [Hub].
func (c *Client) Retrigger(ctx context.Context, job Job) error {
	return classify("re-trigger a job", c.broker.RetriggerJob(ctx, job.Channel, job.Message, job.Consumer))
}

// classify converts an error of the API client to an error with a kind. It returns nil if err is
// nil.
func classify(what string, err error) error {
	p, isProblem := errors.AsType[*brokerclient.Problem](err)
	switch {
	case err == nil:
		return nil
	case !isProblem:
		return domain.Errorf(domain.Unavailable, "%s: %w", what, err)
	}
	switch p.Status {
	case http.StatusBadRequest:
		return domain.Errorf(domain.Invalid, "%s: %w", what, err)
	case http.StatusNotFound:
		return domain.Errorf(domain.NotFound, "%s: %w", what, err)
	case http.StatusConflict:
		return domain.Errorf(domain.Conflict, "%s: %w", what, err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return domain.Errorf(domain.Unavailable, "%s: %w; all nodes at broker.retrigger-url need the same admin.token", what, err)
	}
	if p.Status/100 == 3 {
		return domain.Errorf(domain.Unavailable, "%s: %w; set broker.retrigger-url to the address that the redirect leads to", what, err)
	}
	err = domain.Errorf(domain.Unavailable, "%s: %w", what, err)
	if p.RetryAfter > 0 {
		return &WaitError{err, p.RetryAfter}
	}
	return err
}

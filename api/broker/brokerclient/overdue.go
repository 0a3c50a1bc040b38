package brokerclient

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// An OverduePage has overdue jobs. It may be empty although there are further
// pages.
type OverduePage struct {
	Jobs []Job  // without their history
	Next string // the next page; "" on the last page
}

// Overdue returns a page of the jobs that have been overdue for a time, because
// the node that served their consumers has died and no other node has taken
// over. page is "" for the first page, and Next of the previous page for
// others. The page has one job for each group of consumers that a node takes
// over together; [Client.RetriggerJob] makes a node take over. It needs the
// token of the operators.
func (c *Client) Overdue(ctx context.Context, delay time.Duration, page string) (*OverduePage, error) {
	r := apiCall{method: http.MethodGet, path: []string{"overdue"}, header: c.asAdmin(), query: url.Values{"delay": {delay.String()}}}
	if page != "" {
		r.query.Set("first", page)
	}
	jobs, next, err := fetchPage[Job](ctx, c, &r, "jobs")
	if err != nil {
		return nil, err
	}
	return &OverduePage{Jobs: jobs, Next: next.Get("first")}, nil
}

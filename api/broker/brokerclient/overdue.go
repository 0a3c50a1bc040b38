package brokerclient

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// An OverduePage is a page of overdue jobs. A page may be empty even if another page follows.
type OverduePage struct {
	Jobs []Job  // overdue jobs, without their history
	Next string // page to request next; "" on the last page
}

// Overdue returns a page of the jobs that have been overdue for at least delay. A job becomes
// overdue when the node that served its consumer has died, and no other node has taken over. page
// is "" for the first page, and otherwise Next of the previous page. The list has one job for each
// group of consumers that a node takes over together, and [Client.RetriggerJob] makes a node take
// over. Overdue needs the token of the operators.
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

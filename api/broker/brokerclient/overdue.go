package brokerclient

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// An OverduePage is a page of a list of overdue jobs. An empty page need not be the last one.
type OverduePage struct {
	Jobs []Job  // overdue jobs, without the history of their attempts
	Next string // argument for the next page; "" on the last page
}

// Overdue returns a page of the jobs that have been overdue for at least delay. A job becomes
// overdue if the node that served its consumer has died, and no node has taken over. page is "" for
// the first page, and otherwise Next of the previous page. A node takes over the consumers of one
// shard together, so the list contains one job for each shard. [Client.RetriggerJob] makes a node
// take over. Overdue requires the token of the operators.
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

package brokerclient

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// An OverduePage has jobs that are overdue. It may have none, although there are more.
type OverduePage struct {
	Jobs []Job  // without their history
	Next string // the page behind it; empty on the last page
}

// Overdue returns a page of the jobs that have been overdue for a time, because the node that served
// their consumers has died and no other one has taken over: the first page for "", or the one that Next
// of another one names. It has one job of each part of the consumers that is taken over together;
// [Client.RetriggerJob] has a node take over. It needs the token of the operators.
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

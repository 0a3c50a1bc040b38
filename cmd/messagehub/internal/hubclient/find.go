package hubclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
)

// Found contains the results of a search for an id.
type Found struct {
	ID      string        `json:"id"`
	Results []FoundResult `json:"results"`
	Looked  SearchExtent  `json:"looked"`
	After   string        `json:"after,omitempty"` // continues the search; "" if the search is complete
}

// A FoundResult is an event, a bundle or a delivery that the search found.
type FoundResult struct {
	Kind  string      `json:"kind"`
	State string      `json:"state"`
	Actor string      `json:"actor,omitempty"`
	Title string      `json:"title"`
	Steps []FoundStep `json:"steps"`
	Waits []FoundWait `json:"waits"`
	Notes []string    `json:"notes,omitempty"`
}

// A FoundStep is a step in the history of a search result.
type FoundStep struct {
	What    string        `json:"what"`
	At      *time.Time    `json:"at,omitempty"`
	Text    string        `json:"text"`
	Details []FoundDetail `json:"details,omitempty"`
}

// A FoundDetail is a named property of a history step.
type FoundDetail struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A FoundWait is a reason why an event, a bundle or a delivery is waiting.
type FoundWait struct {
	Cause string     `json:"cause"`
	Since *time.Time `json:"since,omitempty"`
	Text  string     `json:"text"`
	Next  string     `json:"next"`
}

// A SearchExtent describes how much the search has covered.
type SearchExtent struct {
	Kinds     []string      `json:"kinds"`
	Found     int           `json:"found"`
	Mailboxes int           `json:"mailboxes"`
	Unread    int           `json:"unread"`
	Damage    []FoundDamage `json:"damage,omitempty"`
	Notes     []string      `json:"notes,omitempty"`
}

// FoundDamage describes a mailbox, or a part of a mailbox, that the search
// could not read.
type FoundDamage struct {
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason"`
}

const (
	maxFound    = 64 << 20 // maximum size of a response, in bytes
	findRetries = 5        // maximum number of consecutive repetitions of a request; before each, the client waits as long as the hub requested
)

// Find searches for an id until the search is complete, and calls progress with
// intermediate results. more contains further query parameters. If Find fails,
// it returns the results so far and the error.
func (c *Client) Find(ctx context.Context, id string, more url.Values, progress func(*Found)) (*Found, error) {
	all := &Found{ID: id, Results: []FoundResult{}, Looked: SearchExtent{Kinds: []string{}}}
	query := url.Values{"id": {id}}
	for name, values := range more {
		query[name] = values
	}
	for retries := 0; ; {
		part, err := c.findPart(ctx, query)
		if pause, ok := pauseOf(err); ok && retries < findRetries {
			retries++
			if err := waitFor(ctx, pause); err != nil {
				return all, err
			}
			continue
		}
		if err != nil {
			return all, err
		}
		retries = 0
		all.add(part)
		if all.After = part.After; all.After == "" {
			return all, nil
		}
		progress(all)
		query.Set("after", part.After)
	}
}

// add merges the next response of the same search into f.
func (f *Found) add(part *Found) {
	damage, notes := f.Looked.Damage, f.Looked.Notes
	f.Results = append(f.Results, part.Results...)
	f.Looked = part.Looked
	f.Looked.Damage = append(damage, part.Looked.Damage...)
	f.Looked.Notes = notes
	for _, note := range part.Looked.Notes {
		has := false
		for _, before := range notes {
			has = has || before == note
		}
		if !has {
			f.Looked.Notes = append(f.Looked.Notes, note)
		}
	}
}

// findPart sends one request of a search. A response with status 404 that
// describes the search's extent is not an error: nothing was found.
func (c *Client) findPart(ctx context.Context, query url.Values) (*Found, error) {
	req, err := c.Request(ctx, http.MethodGet, "/v1/admin/find?"+query.Encode(), "", nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.HTTP().Do(req)
	if err != nil {
		return nil, c.ExplainError(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxFound))
	if err != nil {
		return nil, c.Unreachable(err)
	}
	var found Found
	switch err := json.Unmarshal(text, &found); {
	case resp.StatusCode == http.StatusOK && err == nil:
		return &found, nil
	case resp.StatusCode == http.StatusNotFound && err == nil && found.Looked.Kinds != nil:
		return &found, nil
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return nil, hubclient.ReadProblem(resp)
}

// pauseOf returns how long to wait before repeating a request that failed with
// err. It returns false if the hub did not permit a repetition.
func pauseOf(err error) (time.Duration, bool) {
	p, ok := errors.AsType[*Problem](err)
	if !ok || p.Status != http.StatusTooManyRequests && p.Status != http.StatusServiceUnavailable || p.RetryAfter <= 0 {
		return 0, false
	}
	return p.RetryAfter, true
}

func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

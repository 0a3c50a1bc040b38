// Package objectclient reports events of objects to a hub as S3 does, and lists the objects that
// the hub knows.
package objectclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// A Client uses the API of a hub for objects. It is safe for concurrent use.
type Client struct {
	HTTP  *http.Client
	URL   string // URL of the hub
	Token string // token of the hub's operators
}

// Counts are the numbers of events of a message by result.
type Counts struct {
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
}

// Send sends a notification in the form that Message returns. It fails if an event was ignored,
// refused or not stored.
func (c *Client) Send(ctx context.Context, message []byte) (Counts, error) {
	var answer struct {
		Counts
		Ignored int               `json:"ignored"`
		TooOld  int               `json:"tooOld"`
		Refused []json.RawMessage `json:"refused"`
	}
	err := c.doRequest(ctx, http.MethodPost, "/v1/object-events", message, &answer)
	if err == nil && answer.Ignored+answer.TooOld+len(answer.Refused) > 0 {
		err = fmt.Errorf("the hub has not stored all events: %d are ignored, %d too old, %d refused", answer.Ignored, answer.TooOld, len(answer.Refused))
	}
	return answer.Counts, err
}

// Page reads a page of a list, and returns its number of rows and the path of the next page, which
// is empty after the last page.
func (c *Client) Page(ctx context.Context, path string) (rows int, next string, err error) {
	var answer struct {
		Results []json.RawMessage `json:"results"`
		Links   struct {
			Next string `json:"next"`
		} `json:"links"`
	}
	err = c.doRequest(ctx, http.MethodGet, path, nil, &answer)
	return len(answer.Results), answer.Links.Next, err
}

// doRequest sends a request that must succeed, and decodes the response.
func (c *Client) doRequest(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	default:
		return json.Unmarshal(answer, into)
	}
}

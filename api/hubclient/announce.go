package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// An Event announces that data is available for a recipient.
type Event struct {
	ID               string          `json:"id"` // a UUID; the hub stores each ID once per recipient
	Recipient        string          `json:"recipient"`
	Origin           string          `json:"origin"` // the domain that announces the data
	ContentType      string          `json:"contentType"`
	DocumentType     string          `json:"documentType"`
	SupportsBundling bool            `json:"supportsBundling"`
	Weight           int64           `json:"weight"` // in KB
	Payload          json.RawMessage `json:"payload,omitempty"`
}

// Announced contains the numbers of events that the hub stores.
type Announced struct {
	Accepted   int `json:"accepted"`   // number of events that this call stored
	Duplicates int `json:"duplicates"` // number of events that were already stored, with the same content
}

// Announce sends events to the hub, which stores them. The order is kept for the events of each
// recipient. If the error is nil, all events are stored durably.
//
// If the hub refuses some events and stores the remaining ones, Announce returns the counts and a
// [*Problem] whose Errors list the refused events. An event is refused if it was stored before with
// different content, or if its recipient is at a limit. If Announce returns no counts, a Problem
// with a status below 500, except 429, means that no event is stored. After any other error, some
// events may be stored, and the caller may announce all of them again.
func (c *Client) Announce(ctx context.Context, events []Event) (*Announced, error) {
	if events == nil {
		events = []Event{}
	}
	body, err := json.Marshal(events)
	if err != nil {
		return nil, fmt.Errorf("hubclient: announce: %w", err)
	}
	return c.AnnounceJSON(ctx, body)
}

// AnnounceJSON is [Client.Announce] for events in a JSON array.
func (c *Client) AnnounceJSON(ctx context.Context, body []byte) (*Announced, error) {
	answer, err := c.sendRepeatedly(ctx, http.MethodPost, "/v1/data-available", "", body)
	if p, ok := errors.AsType[*Problem](err); ok && p.Accepted != nil && p.Duplicates != nil {
		return &Announced{*p.Accepted, *p.Duplicates}, err
	}
	if err != nil {
		return nil, err
	}
	a := new(Announced)
	return a, decodeResponse(answer, a)
}

// decodeResponse decodes the response of a hub into v.
func decodeResponse(answer []byte, v any) error {
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("hubclient: the answer cannot be read; is this a hub? %w", err)
	}
	return nil
}

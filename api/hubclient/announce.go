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
	ID               string          `json:"id"` // a UUID; the hub stores each only once for its recipient
	Recipient        string          `json:"recipient"`
	Origin           string          `json:"origin"` // the domain of the data
	ContentType      string          `json:"contentType"`
	DocumentType     string          `json:"documentType"`
	SupportsBundling bool            `json:"supportsBundling"`
	Weight           int64           `json:"weight"` // in KB
	Payload          json.RawMessage `json:"payload,omitempty"`
}

// Announced counts the events that are stored.
type Announced struct {
	Accepted   int `json:"accepted"`   // events that are stored now
	Duplicates int `json:"duplicates"` // events that were stored before, with the same content
}

// Announce stores events. Events of one recipient keep their order. If it
// returns nil, all of them are stored durably.
//
// If some are refused and the others are stored, it returns the counts and a
// [*Problem] whose Errors name the refused events: they were stored before with
// other content, or their recipient is at a limit. If it returns no counts, a
// Problem whose status is below 500 and not 429 means that no event is stored.
// After any other error some may be stored, and announcing all of them again is
// safe.
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

// AnnounceJSON stores events in a JSON array, as [Client.Announce] does.
func (c *Client) AnnounceJSON(ctx context.Context, body []byte) (*Announced, error) {
	answer, err := c.sendRepeatedly(ctx, http.MethodPost, "/v1/data-available", "", body)
	if p, ok := errors.AsType[*Problem](err); ok && p.Accepted != nil && p.Duplicates != nil {
		return &Announced{*p.Accepted, *p.Duplicates}, err
	}
	if err != nil {
		return nil, err
	}
	a := new(Announced)
	return a, decodeAnswer(answer, a)
}

// decodeAnswer decodes the answer of a hub.
func decodeAnswer(answer []byte, v any) error {
	if err := json.Unmarshal(answer, v); err != nil {
		return fmt.Errorf("hubclient: the answer cannot be read; is this a hub? %w", err)
	}
	return nil
}

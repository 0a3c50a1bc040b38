package hubclient

import (
	"context"
	"net/http"
	"time"
)

// A Queue describes the data of one group of domains that waits for an actor.
type Queue struct {
	Group      string      `json:"group"`
	Waiting    int64       `json:"waiting"`              // number of events, including the events of the open bundle
	AgeSeconds *int64      `json:"ageSeconds,omitempty"` // age of the oldest event; nil if the age is unknown
	Open       *OpenBundle `json:"open,omitempty"`       // nil: none
}

// An OpenBundle describes a bundle that was fetched but not dequeued.
type OpenBundle struct {
	ID     string    `json:"bundleId"`
	Events int       `json:"events"`
	Opened time.Time `json:"opened"`
}

// Queues returns the queues of an actor, one for each group, sorted by the names of the groups. It
// opens no bundle.
func (c *Client) Queues(ctx context.Context, actor string) ([]Queue, error) {
	answer, err := c.sendRepeatedly(ctx, http.MethodGet, "/v1/queues", actor, nil)
	if err != nil {
		return nil, err
	}
	var q struct {
		Queues []Queue `json:"queues"`
	}
	err = decodeResponse(answer, &q)
	return q.Queues, err
}

package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
)

// A groupQueue describes the events of one group that wait for an actor.
type groupQueue struct {
	Group      string      `json:"group"`
	Waiting    int64       `json:"waiting"`              // number of waiting events, including those of the open bundle
	AgeSeconds *int64      `json:"ageSeconds,omitempty"` // age of the oldest waiting event; nil if unknown
	Open       *openBundle `json:"open,omitempty"`
}

type openBundle struct {
	BundleID string    `json:"bundleId"`
	Events   int       `json:"events"`
	Opened   time.Time `json:"opened"`
}

// queues responds with the queues of an actor, one for each group. It opens no bundle.
func (s *Server) queues(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	found, err := s.opts.Hub.Queues(r.Context(), actorOf(r.Context()))
	if err != nil {
		return err
	}
	answer := struct {
		Queues []groupQueue `json:"queues"`
	}{Queues: make([]groupQueue, 0, len(found))}
	granted := grantedGroups(r.Context())
	for _, f := range found {
		if granted != nil && !slices.Contains(granted, f.Group) {
			continue
		}
		q := groupQueue{Group: f.Group.String(), Waiting: f.Waiting.Events}
		if age, ok := s.ageOf(f.Waiting); ok {
			q.AgeSeconds = &age
		}
		if f.Open != nil {
			q.Open = &openBundle{f.Open.ID.String(), f.Open.Count, f.Open.Opened.UTC()}
		}
		answer.Queues = append(answer.Queues, q)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

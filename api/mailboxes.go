package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/survey"
)

// Operators can list the mailboxes of all actors, as the last survey found them.

type mailboxList struct {
	SurveyedAt *time.Time        `json:"surveyedAt,omitempty"` // time of the survey; nil if no survey has yet read all mailboxes
	Matching   int               `json:"matching"`
	Queues     []mailboxDocument `json:"queues"`
	Next       string            `json:"next,omitempty"`
}

type mailboxDocument struct {
	Recipient   string                 `json:"recipient"`
	State       string                 `json:"state"`
	Waiting     int64                  `json:"waiting"`              // number of waiting events, including those of open bundles
	AgeSeconds  *int64                 `json:"ageSeconds,omitempty"` // age of the oldest waiting event; nil if unknown
	Frozen      bool                   `json:"frozen,omitempty"`
	Damage      string                 `json:"damage,omitempty"`
	LastPeek    *time.Time             `json:"lastPeek,omitempty"` // time of the last Peek that opened a bundle
	LastDequeue *time.Time             `json:"lastDequeue,omitempty"`
	Groups      []mailboxGroupDocument `json:"groups"`
}

type mailboxGroupDocument struct {
	Group       string               `json:"group"`
	Waiting     int64                `json:"waiting"`
	AgeSeconds  *int64               `json:"ageSeconds,omitempty"`
	Open        *mailboxOpenDocument `json:"open,omitempty"`
	LastPeek    *time.Time           `json:"lastPeek,omitempty"`
	LastDequeue *time.Time           `json:"lastDequeue,omitempty"`
}

type mailboxOpenDocument struct {
	BundleID     string     `json:"bundleId"`
	Opened       time.Time  `json:"opened"`
	Failures     int        `json:"failures,omitempty"` // number of consecutive failures of the bundle's domain
	FailingSince *time.Time `json:"failingSince,omitempty"`
}

// listMailboxes lists the mailboxes of all actors.
func (s *Server) listMailboxes(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "after", "size", "sort", "state")
	if err != nil {
		return err
	}
	q := survey.Query{
		State: domain.MailboxState(values.Get("state")), Order: survey.Order(values.Get("sort")), After: values.Get("after"),
	}
	if values.Has("size") {
		if q.Size, err = strconv.Atoi(values.Get("size")); err != nil || q.Size == 0 {
			return refuse(invalid, "size: want 1 to %d, got %q.", survey.MaxPage, domain.Shorten(values.Get("size")))
		}
	}
	page, err := s.opts.Mailboxes.List(r.Context(), q)
	if err != nil {
		return err
	}
	list := mailboxList{SurveyedAt: timeOrNil(page.SurveyedAt), Matching: page.Matching, Next: page.Next, Queues: make([]mailboxDocument, len(page.Mailboxes))}
	for i := range page.Mailboxes {
		list.Queues[i] = s.documentOfMailbox(&page.Mailboxes[i])
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) documentOfMailbox(m *domain.Mailbox) mailboxDocument {
	waiting := m.Waiting()
	d := mailboxDocument{
		Recipient: m.Recipient.String(), State: string(m.State()), Waiting: waiting.Events, AgeSeconds: s.ageOrNil(waiting),
		Frozen: m.Frozen, Damage: m.Damage, LastPeek: timeOrNil(m.LastPeek()), LastDequeue: timeOrNil(m.LastDequeue()),
		Groups: make([]mailboxGroupDocument, len(m.Groups)),
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		d.Groups[i] = mailboxGroupDocument{
			Group: g.Group.String(), Waiting: g.Waiting.Events, AgeSeconds: s.ageOrNil(g.Waiting),
			LastPeek: timeOrNil(g.LastPeek), LastDequeue: timeOrNil(g.LastDequeue),
		}
		if g.Open != (domain.BundleID{}) {
			d.Groups[i].Open = &mailboxOpenDocument{
				BundleID: g.Open.String(), Opened: g.Opened.UTC(), Failures: g.Failures, FailingSince: timeOrNil(g.FailingSince),
			}
		}
	}
	return d
}

// ageOrNil returns the age of the oldest event. It returns nil if no event waits or the age is
// unknown.
func (s *Server) ageOrNil(b domain.Backlog) *int64 {
	if age, ok := s.ageOf(b); ok {
		return &age
	}
	return nil
}

package api

import (
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// Operators can inspect what is stored for an actor.

type shownQueue struct {
	Recipient string         `json:"recipient"`
	Frozen    bool           `json:"frozen"`
	Freeze    *shownFreeze   `json:"freeze,omitempty"`
	Reserved  int64          `json:"reserved"`
	Watermark int64          `json:"watermark"`
	Saving    bool           `json:"saving"`
	Groups    []shownGroup   `json:"groups"`
	Cabinets  []shownCabinet `json:"cabinets"`
}

// A shownFreeze is the JSON of the order that has frozen a mailbox.
type shownFreeze struct {
	When time.Time `json:"when"`
	Who  string    `json:"who"`
	Why  string    `json:"why"`
}

type shownGroup struct {
	Group      string      `json:"group"`
	Generation int64       `json:"generation"`
	Waiting    int64       `json:"waiting"`
	Open       *bundleView `json:"open,omitempty"`
}

type bundleView struct {
	BundleID    string        `json:"bundleId"`
	Group       string        `json:"group"`
	Origin      string        `json:"origin"`
	ContentType string        `json:"contentType"`
	Events      int           `json:"events"`
	Weight      int64         `json:"weight"`
	First       int64         `json:"first"`
	Last        int64         `json:"last"`
	Opened      time.Time     `json:"opened"`
	Domain      *contentState `json:"domain,omitempty"` // attempts of the domain to produce the bundle's content
}

// A contentState is the JSON of a domain's attempts to produce the content of a bundle.
type contentState struct {
	Answered bool   `json:"answered"`
	Failures int    `json:"failures,omitempty"` // consecutive failures
	Reason   string `json:"reason,omitempty"`   // reason of the last failure
	Text     string `json:"text,omitempty"`
	Marked   bool   `json:"marked,omitempty"` // whether the domain cannot succeed until an operator acts
}

type shownCabinet struct {
	Origin       string        `json:"origin"`
	ContentType  string        `json:"contentType"`
	Group        string        `json:"group"`
	Received     int64         `json:"received"`
	Acknowledged int64         `json:"acknowledged"`
	Last         int64         `json:"last"`
	Through      int64         `json:"through"`
	Floor        int           `json:"floor"`
	Drawers      []shownDrawer `json:"drawers"`
}

type shownDrawer struct {
	ID       string `json:"id"`
	Ordinal  int    `json:"ordinal"`
	First    int64  `json:"first"`
	Events   int    `json:"events"`
	Weight   int64  `json:"weight"`
	Sealed   bool   `json:"sealed"`
	Position int    `json:"position"`
}

type shownRecord struct {
	When     time.Time `json:"when"`
	Who      string    `json:"who"`
	Why      string    `json:"why"`
	What     string    `json:"what"`
	Group    string    `json:"group,omitempty"`
	BundleID string    `json:"bundleId,omitempty"`
	Events   int       `json:"events,omitempty"`

	Lost *shownLoss `json:"lost,omitempty"`
}

// A shownLoss describes events of a cabinet that the store has lost.
type shownLoss struct {
	Origin      string           `json:"origin"`
	ContentType string           `json:"contentType"`
	Events      int64            `json:"events"`
	First       int64            `json:"first"`
	Last        int64            `json:"last"`
	Slots       []shownLostSlots `json:"slots"`
}

type shownLostSlots struct {
	Drawer  string `json:"drawer"`
	Ordinal int    `json:"ordinal"`
	From    int    `json:"from"`
	To      int    `json:"to"`
}

func newShownLoss(l *hub.Loss) *shownLoss {
	shown := &shownLoss{
		Origin: l.Cabinet.Origin.String(), ContentType: l.Cabinet.ContentType.String(),
		Events: l.Events, First: int64(l.First), Last: int64(l.Last), Slots: make([]shownLostSlots, 0, len(l.Slots)),
	}
	for _, s := range l.Slots {
		shown.Slots = append(shown.Slots, shownLostSlots(s))
	}
	return shown
}

// inspect responds with what is stored for an actor. It changes nothing.
func (s *Server) inspect(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	found, err := s.opts.Operator.Inspect(r.Context(), actorOf(r.Context()))
	if err != nil {
		return err
	}
	q := shownQueue{
		Recipient: found.Recipient.String(), Frozen: found.Frozen, Reserved: int64(found.Reserved), Watermark: int64(found.Watermark),
		Saving: found.Saving, Groups: make([]shownGroup, 0, len(found.Groups)), Cabinets: make([]shownCabinet, 0, len(found.Cabinets)),
	}
	for _, g := range found.Groups {
		shown := shownGroup{Group: g.Group.String(), Generation: g.Generation, Waiting: g.Waiting}
		if g.Open != nil {
			open := shownBundle(g.Open)
			shown.Open = &open
		}
		q.Groups = append(q.Groups, shown)
	}
	for _, c := range found.Cabinets {
		shown := shownCabinet{
			Origin: c.Cabinet.Origin.String(), ContentType: c.Cabinet.ContentType.String(), Group: c.Group.String(),
			Received: c.Received, Acknowledged: c.Acknowledged, Last: int64(c.Last), Through: int64(c.AcknowledgedThrough), Floor: c.Floor,
			Drawers: make([]shownDrawer, 0, len(c.Drawers)),
		}
		for _, d := range c.Drawers {
			shown.Drawers = append(shown.Drawers, shownDrawer{
				ID: d.ID, Ordinal: d.Ordinal, First: int64(d.First), Events: d.Events, Weight: int64(d.Weight), Sealed: d.Sealed, Position: d.Position,
			})
		}
		q.Cabinets = append(q.Cabinets, shown)
	}
	if found.Frozen {
		freeze, err := s.opts.Operator.FindFreeze(r.Context(), found.Recipient)
		if err != nil {
			return err
		}
		if freeze != nil {
			q.Freeze = &shownFreeze{When: freeze.When.UTC(), Who: freeze.Who, Why: freeze.Why}
		}
	}
	writeJSON(w, http.StatusOK, q)
	return nil
}

func shownBundle(b *domain.Bundle) bundleView {
	var state *contentState
	if t := b.ContentFailure; b.Content == domain.Request {
		state = &contentState{Answered: !b.IsUnanswered(), Failures: t.Failures, Reason: t.Reason, Text: t.Text, Marked: t.NeedsOperator()}
	}
	return bundleView{
		Domain:   state,
		BundleID: b.ID.String(), Group: b.Group.String(), Origin: b.Cabinet.Origin.String(), ContentType: b.Cabinet.ContentType.String(),
		Events: b.Count, Weight: int64(b.Weight), First: int64(b.First), Last: int64(b.Last), Opened: b.Opened.UTC(),
	}
}

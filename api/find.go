package api

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/internal/cloudevent"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
)

const findPath = "/v1/admin/find"

var findParameters = []string{"actor", "after", "id", "kind", "origin", "source", "topic"}

// Operators can search for an id in all stores.

type foundDocument struct {
	ID      string           `json:"id"`
	Results []resultDocument `json:"results"`
	Looked  searchedDocument `json:"looked"`
	After   string           `json:"after,omitempty"`
}

type resultDocument struct {
	Kind  find.Kind      `json:"kind"`
	State find.State     `json:"state"`
	Actor string         `json:"actor,omitempty"`
	Title string         `json:"title"`
	Steps []stepDocument `json:"steps"`
	Waits []waitDocument `json:"waits"`
	Notes []string       `json:"notes,omitempty"`
}

type stepDocument struct {
	What    find.StepKind    `json:"what"`
	At      *time.Time       `json:"at,omitempty"`
	Text    string           `json:"text"`
	Details []detailDocument `json:"details,omitempty"`
}

type detailDocument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type waitDocument struct {
	Cause find.Cause `json:"cause"`
	Since *time.Time `json:"since,omitempty"`
	Text  string     `json:"text"`
	Next  string     `json:"next"`
}

// A searchedDocument describes what a search has covered: the kinds, the mailboxes, and what could
// not be read.
type searchedDocument struct {
	Kinds     []find.Kind          `json:"kinds"`
	Found     int                  `json:"found"`
	Mailboxes int                  `json:"mailboxes"`
	Unread    int                  `json:"unread"`
	Damage    []unreadableDocument `json:"damage,omitempty"`
	Notes     []string             `json:"notes,omitempty"`
}

type unreadableDocument struct {
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason"`
}

// find responds with everything that is stored about an id.
func (s *Server) find(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Find == nil {
		return refuse(noRoute, "This hub cannot look for ids.")
	}
	values, err := query.Parse(r, findParameters...)
	if err != nil {
		return err
	}
	for _, name := range findParameters {
		if values.Has(name) && values.Get(name) == "" {
			return refuse(invalid, "%s: empty; send a value, or leave it out.", name)
		}
	}
	q := find.Query{ID: values.Get("id"), Kind: find.Kind(values.Get("kind")), After: values.Get("after")}
	if values.Has("source") {
		q.MessageID = cloudevent.MessageID(values.Get("source"), q.ID)
	}
	if q.Topic = values.Get("topic"); q.Topic != "" && q.MessageID == "" {
		return refuse(invalid, "topic: it needs source; a published event is known by its source and its id.")
	}
	if values.Has("actor") {
		if q.Actor, err = domain.ParseActorID(values.Get("actor")); err != nil {
			return &problemError{problem: invalidActor, detail: err.Error(), cause: err}
		}
	}
	if values.Has("origin") {
		if q.Origin, err = domain.ParseOrigin(values.Get("origin")); err != nil {
			return err
		}
	}
	recordOf(r.Context()).note(slog.String("id", strings.Trim(strconv.QuoteToASCII(domain.Shorten(q.ID)), `"`)))
	a, err := s.opts.Find.Find(r.Context(), q)
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.Int("found", len(a.Results)), slog.Int("mailboxes", a.Scope.Mailboxes))
	document := documentOfFound(a)
	if a.IsUnknown() {
		return &problemError{
			problem: notFound, looked: &document.Looked,
			detail: fmt.Sprintf("Nothing with the id %q is stored, as far as it was looked for; looked says where that was.", domain.Shorten(a.ID)),
		}
	}
	writeJSON(w, http.StatusOK, document)
	return nil
}

func documentOfFound(a *find.Answer) *foundDocument {
	d := &foundDocument{
		ID: a.ID, After: a.After, Results: make([]resultDocument, len(a.Results)),
		Looked: searchedDocument{
			Kinds: append([]find.Kind{}, a.Scope.Kinds...), Found: a.Scope.Found, Mailboxes: a.Scope.Mailboxes,
			Unread: a.Scope.Unread, Notes: a.Scope.Notes,
		},
	}
	for _, u := range a.Scope.Damage {
		d.Looked.Damage = append(d.Looked.Damage, unreadableDocument{Actor: u.Recipient, Reason: cmp.Or(u.Reason, "not known")})
	}
	for i := range a.Results {
		d.Results[i] = documentOfResult(&a.Results[i])
	}
	return d
}

func documentOfResult(r *find.Result) resultDocument {
	d := resultDocument{
		Kind: r.Kind, State: r.State, Actor: r.Actor.String(), Title: r.Title, Notes: r.Notes,
		Steps: make([]stepDocument, len(r.Steps)), Waits: make([]waitDocument, len(r.Waits)),
	}
	for i := range r.Steps {
		step := &r.Steps[i]
		d.Steps[i] = stepDocument{What: step.What, At: timeOrNil(step.At), Text: step.Text}
		for _, detail := range step.Details {
			d.Steps[i].Details = append(d.Steps[i].Details, detailDocument(detail))
		}
	}
	for i := range r.Waits {
		wait := &r.Waits[i]
		d.Waits[i] = waitDocument{Cause: wait.Cause, Since: timeOrNil(wait.Since), Text: wait.Text, Next: wait.Next}
	}
	return d
}

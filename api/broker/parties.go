package broker

import (
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/internal/etag"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A partyDocument is the JSON of a producer, a channel or a consumer, without its token.
type partyDocument struct {
	ID          string    `json:"id"`
	Channel     string    `json:"channel,omitempty"` // set only for a consumer
	Name        string    `json:"name"`
	CallbackURL string    `json:"callbackUrl,omitempty"` // set only for a consumer
	Created     time.Time `json:"created"`
	Changed     time.Time `json:"changed"`
}

func documentOfParty(p *broker.Party) partyDocument {
	d := partyDocument{ID: p.ID.String(), Name: p.Label, CallbackURL: p.CallbackURL, Created: p.Created.UTC(), Changed: p.Changed.UTC()}
	if p.ID.IsConsumer() {
		d.Channel = p.ID.Channel().String()
	}
	return d
}

func writeParty(w http.ResponseWriter, status int, p *broker.Party) {
	w.Header().Set("ETag", etag.Of(p.Version))
	writeJSON(w, status, p.Changed, documentOfParty(p))
}

// A partyFinder returns the id of the party in the path of a request.
type partyFinder func(*http.Request) (domain.PartyID, error)

// put returns a handler that creates or changes a party.
func (e *edge) put(find partyFinder) handler {
	return func(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
		id, err := find(r)
		if err != nil {
			return err
		}
		return e.putParty(w, r, creds, id)
	}
}

// putParty creates or changes a party. It verifies the credentials before it reads the body.
func (e *edge) putParty(w http.ResponseWriter, r *http.Request, creds *broker.Credentials, id domain.PartyID) error {
	if err := creds.RequireAdmin(); err != nil {
		return err
	}
	if _, err := query.Parse(r); err != nil {
		return err
	}
	when, err := conditionOf(r)
	if err != nil {
		return err
	}
	draft, err := e.readForm(w, r, id.IsConsumer())
	if err != nil {
		return err
	}
	stored, created, err := e.service.PutParty(r.Context(), creds, id, draft, when)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", partyPath(id))
	}
	writeParty(w, status, stored)
	return nil
}

// get returns a handler that responds with a party.
func (e *edge) get(find partyFinder) handler {
	return func(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
		id, err := find(r)
		if err != nil {
			return err
		}
		if _, err := query.Parse(r); err != nil {
			return err
		}
		found, err := e.service.GetParty(r.Context(), creds, id)
		if err != nil {
			return err
		}
		writeParty(w, http.StatusOK, found)
		return nil
	}
}

func (e *edge) listProducers(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	return e.list(w, r, creds, domain.Producers, "producers", "/broker/producers")
}

func (e *edge) listChannels(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	return e.list(w, r, creds, domain.Channels, "channels", "/broker/channels")
}

func (e *edge) listConsumers(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	channel, err := e.channelOf(r)
	if err != nil {
		return err
	}
	return e.list(w, r, creds, channel.Consumers(), "consumers", channelPath(channel)+"/consumers")
}

// list responds with a page of a list: an object whose array is called member.
func (e *edge) list(w http.ResponseWriter, r *http.Request, creds *broker.Credentials, list domain.PartyList, member, path string) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	if p.first != "" {
		if _, err := list.Parse(p.first); err != nil {
			return domain.Errorf(domain.Invalid, "first: %w", err)
		}
	}
	found, next, err := e.service.ListParties(r.Context(), creds, list, p.first, p.size)
	if err != nil {
		return err
	}
	documents := make([]partyDocument, len(found))
	var changed time.Time
	for i := range found {
		documents[i] = documentOfParty(found[i])
		changed = laterOf(changed, found[i].Changed)
	}
	answer := map[string]any{member: documents}
	if next != "" {
		answer["next"] = p.nextPath(path, next)
	}
	writeJSON(w, http.StatusOK, changed, answer)
	return nil
}

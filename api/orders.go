package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// Operators repair a stuck mailbox with orders, such as release and skip. Each order must have a
// reason. The hub records the operator's name, the reason and what the order changed.

// orderBytes is the maximum size of an order in bytes. It suffices for an operator and a reason in
// which every character is escaped.
const orderBytes = 16 * kilobyte

func (s *Server) freeze(w http.ResponseWriter, r *http.Request) error {
	return s.plainOrder(w, r, s.opts.Operator.Freeze)
}

func (s *Server) thaw(w http.ResponseWriter, r *http.Request) error {
	return s.plainOrder(w, r, s.opts.Operator.Thaw)
}

func (s *Server) plainOrder(w http.ResponseWriter, r *http.Request, carryOut func(context.Context, domain.ActorID, hub.AdminAction) error) error {
	by, err := readOrder(w, r, nil)
	if err != nil {
		return err
	}
	if err := carryOut(r.Context(), actorOf(r.Context()), by); err != nil {
		return err
	}
	return writeNoContent(w)
}

func (s *Server) release(w http.ResponseWriter, r *http.Request) error {
	return s.orderAboutBundle(w, r, s.opts.Operator.Release)
}

func (s *Server) skip(w http.ResponseWriter, r *http.Request) error {
	return s.orderAboutBundle(w, r, s.opts.Operator.Skip)
}

func (s *Server) orderAboutBundle(w http.ResponseWriter, r *http.Request, carryOut func(context.Context, domain.ActorID, domain.BundleID, hub.AdminAction) error) error {
	var bundle string
	by, err := readOrder(w, r, jsonFields{"bundleId": &bundle}, "bundleId")
	if err != nil {
		return err
	}
	id, err := domain.ParseBundleID(bundle)
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.String("bundle_id", id.String()))
	if err := carryOut(r.Context(), actorOf(r.Context()), id, by); err != nil {
		return err
	}
	return writeNoContent(w)
}

// replay reopens a bundle, and responds with the bundle that the next Peek will return.
func (s *Server) replay(w http.ResponseWriter, r *http.Request) error {
	var name string
	by, err := readOrder(w, r, jsonFields{"group": &name}, "group")
	if err != nil {
		return err
	}
	group, err := s.group(name)
	if err != nil {
		return err
	}
	bundle, err := s.opts.Operator.Replay(r.Context(), actorOf(r.Context()), group, by)
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.String("bundle_id", bundle.ID.String()), slog.Int("events", bundle.Count))
	writeJSON(w, http.StatusOK, shownBundle(&bundle))
	return nil
}

// abandon skips events that the store has lost, and responds with their number.
func (s *Server) abandon(w http.ResponseWriter, r *http.Request) error {
	var origin, contentType string
	by, err := readOrder(w, r, jsonFields{"origin": &origin, "contentType": &contentType}, "origin", "contentType")
	if err != nil {
		return err
	}
	cabinet := domain.CabinetKey{Recipient: actorOf(r.Context())}
	if cabinet.Origin, err = domain.ParseOrigin(origin); err != nil {
		return err
	}
	if cabinet.ContentType, err = domain.ParseContentType(contentType); err != nil {
		return err
	}
	loss, err := s.opts.Operator.Abandon(r.Context(), cabinet, by)
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.Int64("events", loss.Events))
	writeJSON(w, http.StatusOK, newShownLoss(&loss))
	return nil
}

// records responds with the records of operators' orders for a mailbox.
func (s *Server) records(w http.ResponseWriter, r *http.Request) error {
	const usual, limit = 100, 1000
	values, err := query.Parse(r, "most")
	if err != nil {
		return err
	}
	n := usual
	if values.Has("most") {
		if n, err = strconv.Atoi(values.Get("most")); err != nil || n < 1 || n > limit {
			return refuse(invalid, "most: want a whole number from 1 to %d, got %q", limit, domain.Shorten(values.Get("most")))
		}
	}
	found, err := s.opts.Operator.Records(r.Context(), actorOf(r.Context()), n)
	if err != nil {
		return err
	}
	answer := struct {
		Records []shownRecord `json:"records"`
	}{Records: make([]shownRecord, 0, len(found))}
	for _, f := range found {
		shown := shownRecord{When: f.When.UTC(), Who: f.Who, Why: f.Why, What: f.What, Group: f.Group.String(), Events: f.Events}
		if f.Bundle != (domain.BundleID{}) {
			shown.BundleID = f.Bundle.String()
		}
		if f.Lost != nil {
			shown.Lost = newShownLoss(f.Lost)
		}
		answer.Records = append(answer.Records, shown)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// readOrder reads an order: the operator, the reason, and the fields in about.
func readOrder(w http.ResponseWriter, r *http.Request, about jsonFields, required ...string) (by hub.AdminAction, err error) {
	all := jsonFields{"who": &by.Who, "why": &by.Why}
	for name, at := range about {
		all[name] = at
	}
	required = append([]string{"why"}, required...)
	p := principalOf(r.Context())
	if p == nil {
		required = append([]string{"who"}, required...)
	}
	if err := all.readFields(w, r, orderBytes, required...); err != nil {
		return by, err
	}
	if p != nil {
		by.Who = p.RecordName(by.Who)
	}
	recordOf(r.Context()).note(slog.String("who", by.Who))
	return by, nil
}

func writeNoContent(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

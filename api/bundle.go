package api

import (
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// bundle responds with the body of an open bundle. Unlike a Peek, it never opens a bundle. Clients
// use it to resume an interrupted download.
func (s *Server) bundle(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := domain.ParseBundleID(pathparam.Value(r, "bundleId"))
	if err != nil {
		return err
	}
	rec := recordOf(r.Context())
	rec.note(slog.String("bundle_id", id.String()))
	if err := s.checkBundle(r.Context(), id); err != nil {
		return err
	}
	actor := actorOf(r.Context())
	slot, err := s.newStoreSlot(r.Context(), actor)
	if err != nil {
		return err
	}
	defer slot.close()
	peeked, err := s.opts.Hub.Bundle(r.Context(), hub.PeekRequest{
		Actor: actor, BundleID: id, By: s.contentDeadline(), Pause: slot.pause,
	})
	if err != nil {
		return asNotOpen(id, err)
	}
	rec.note(slog.Int("events", peeked.Count))
	return s.sendBundle(w, r, peeked, slot)
}

// asNotOpen converts a NotFound error to a problem, and returns any other error unchanged. The
// problem is the same for unknown bundles, dequeued bundles, and bundles of other actors, about
// which an actor must not learn anything.
func asNotOpen(id domain.BundleID, err error) error {
	if domain.KindOf(err) != domain.NotFound {
		return err
	}
	return &problemError{problem: notFound, detail: "No bundle " + id.String() + " is open for this actor.", cause: err}
}

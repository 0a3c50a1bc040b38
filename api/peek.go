package api

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// peek answers with the actor's open bundle or, if none is open, the next one.
func (s *Server) peek(w http.ResponseWriter, r *http.Request) error {
	req, err := s.peekRequest(r)
	if err != nil {
		return err
	}
	return s.hand(w, r, req)
}

// hand answers with the bundle that req asks for. HEAD only looks, and If-Match
// names a bundle that the client knows, so neither opens one.
func (s *Server) hand(w http.ResponseWriter, r *http.Request, req hub.PeekRequest) error {
	known := len(r.Header["If-Match"]) > 0
	req.OpenOnly = known || r.Method == http.MethodHead
	if err := s.peeks.take(r.Context(), 1); err != nil {
		return err
	}
	defer s.peeks.room.Release(1)
	peeked, err := s.opts.Hub.Peek(r.Context(), req)
	switch {
	case errors.Is(err, domain.ErrNoData) && known:
		return errPrecondition
	case errors.Is(err, domain.ErrNoData) && req.OpenOnly:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.Is(err, domain.ErrNoData):
		s.metrics.backlog.Observe(0)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	}
	s.metrics.backlog.Observe(float64(peeked.Backlog))
	rec := recordOf(r.Context())
	rec.note(
		slog.String("bundle_id", peeked.ID.String()),
		slog.Int("events", peeked.Count),
		slog.Int64("backlog", peeked.Backlog),
	)
	return s.sendBundle(w, r, peeked)
}

func (s *Server) peekRequest(r *http.Request) (hub.PeekRequest, error) {
	req := hub.PeekRequest{Actor: actorOf(r.Context())}
	if name := chi.URLParam(r, "group"); name != "" {
		group, err := s.group(name)
		if err != nil {
			return req, err
		}
		req.Groups = []domain.Group{group}
	}
	values, err := query(r, "bundleId", "format", "version")
	if err != nil {
		return req, err
	}
	if values.Has("bundleId") {
		if req.BundleID, err = domain.ParseBundleID(values.Get("bundleId")); err != nil {
			return req, err
		}
	}
	if values.Has("format") {
		if req.Format, err = domain.ParseFormat(values.Get("format")); err != nil {
			return req, err
		}
	}
	if values.Has("version") {
		req.Version = values.Get("version")
		if !isWord(req.Version, 32) {
			return req, refuse(invalid, "version: want 1 to 32 characters of A-Z a-z 0-9 . _ -, got %q", clip(req.Version))
		}
	}
	return req, nil
}

// group returns the group that a part of a path names.
func (s *Server) group(name string) (domain.Group, error) {
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	group, err := s.opts.Hub.Groups().Find(name)
	if err != nil {
		return group, &problemError{problem: unknownGroup, detail: err.Error(), cause: err}
	}
	return group, nil
}

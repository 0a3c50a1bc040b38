package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// peek answers with the actor's open bundle or, if none is open, the next one. It
// waits for one if it is asked to.
func (s *Server) peek(w http.ResponseWriter, r *http.Request) error {
	req, wait, err := s.peekRequest(r)
	if err != nil {
		return err
	}
	peeked, leave, err := s.fetch(r.Context(), req, wait)
	switch {
	case errors.Is(err, domain.ErrNoData):
		s.metrics.backlog.Observe(0)
		s.tellBacklog(w.Header(), domain.Backlog{})
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	}
	defer leave()
	s.metrics.backlog.Observe(float64(peeked.Backlog))
	rec := recordOf(r.Context())
	rec.note(
		slog.String("bundle_id", peeked.ID.String()),
		slog.Int("events", peeked.Count),
		slog.Int64("backlog", peeked.Backlog),
	)
	body := &bundleBody{w: w, bundle: &peeked.Bundle, tell: func(h http.Header) { s.tellBacklog(h, peeked.Behind) }}
	if err := peeked.WriteBody(r.Context(), body); err != nil {
		if !body.begun {
			return err
		}
		// The status is on its way. A body that breaks off cannot be taken for
		// a whole one; one that ends early could.
		rec.err = fmt.Errorf("the body broke off: %w", err)
		panic(http.ErrAbortHandler)
	}
	s.metrics.peeked.Add(float64(peeked.Count))
	return nil
}

func (s *Server) peekRequest(r *http.Request) (req hub.PeekRequest, wait time.Duration, err error) {
	req = hub.PeekRequest{Actor: actorOf(r.Context())}
	if name := chi.URLParam(r, "group"); name != "" {
		group, err := s.group(name)
		if err != nil {
			return req, 0, err
		}
		req.Groups = []domain.Group{group}
	}
	values, err := query(r, "bundleId", "format", "version", "wait")
	if err != nil {
		return req, 0, err
	}
	if values.Has("bundleId") {
		if req.BundleID, err = domain.ParseBundleID(values.Get("bundleId")); err != nil {
			return req, 0, err
		}
	}
	if values.Has("format") {
		if req.Format, err = domain.ParseFormat(values.Get("format")); err != nil {
			return req, 0, err
		}
	}
	if values.Has("version") {
		req.Version = values.Get("version")
		if !isWord(req.Version, 32) {
			return req, 0, refuse(invalid, "version: want 1 to 32 characters of A-Z a-z 0-9 . _ -, got %q", clip(req.Version))
		}
	}
	if values.Has("wait") {
		wait, err = parseWait(values.Get("wait"), s.opts.Limits.Wait)
	}
	return req, wait, err
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

// A bundleBody is the body of a 200 that begins with the first write: until
// then, the answer may still become a problem.
type bundleBody struct {
	w      http.ResponseWriter
	bundle *domain.Bundle
	tell   func(http.Header) // what waits behind it
	begun  bool
}

func (b *bundleBody) Write(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		h := b.w.Header()
		// These two as the original spells them, for clients that compare letter by letter.
		h["MessageId"] = []string{b.bundle.ID.String()}
		h["MessageType"] = []string{b.bundle.MessageType()}
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		b.tell(h)
		b.w.WriteHeader(http.StatusOK)
	}
	return b.w.Write(p)
}

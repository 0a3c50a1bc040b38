package api

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// peek responds with the actor's open bundle or, if none is open, opens the next one. If no data is
// available, it waits as long as the request allows.
func (s *Server) peek(w http.ResponseWriter, r *http.Request) error {
	req, wait, err := s.peekRequest(r)
	if err != nil {
		return err
	}
	return s.sendPeeked(w, r, req, wait)
}

// sendPeeked responds with the bundle that req requests. If the method is HEAD, or if the header
// If-Match names a bundle, it neither opens a bundle nor waits for one.
func (s *Server) sendPeeked(w http.ResponseWriter, r *http.Request, req hub.PeekRequest, wait time.Duration) error {
	var err error
	if req.Groups, err = restrictGroups(r.Context(), req.Groups); err != nil {
		return err
	}
	rec := recordOf(r.Context())
	rec.describeOperation("peek", tracing.Receive, req.Actor)
	req.Opened = rec.linkTo
	known := len(r.Header["If-Match"]) > 0
	if req.OpenOnly = known || r.Method == http.MethodHead; req.OpenOnly {
		wait = 0
	}
	peeked, slot, err := s.fetch(w, r, req, wait)
	switch {
	case errors.Is(err, domain.ErrNoData) && known:
		return errPrecondition
	case errors.Is(err, domain.ErrNoData) && req.OpenOnly:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	case errors.Is(err, domain.ErrNoData):
		s.metrics.backlog.Observe(0)
		s.setBacklogHeaders(w.Header(), domain.Backlog{})
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	}
	defer slot.close()
	s.metrics.backlog.Observe(float64(peeked.Behind.Events))
	rec.describe(tracing.MessageID.String(peeked.ID.String()), tracing.BatchSize.Int(peeked.Count),
		tracing.Group.String(peeked.Group.String()), tracing.Origin.String(peeked.Cabinet.Origin.String()))
	rec.note(
		slog.String("bundle_id", peeked.ID.String()),
		slog.Int("events", peeked.Count),
		slog.Int64("waiting", peeked.Waiting),
		slog.Int64("backlog", peeked.Behind.Events),
	)
	return s.sendBundle(w, r, peeked, slot)
}

func (s *Server) peekRequest(r *http.Request) (req hub.PeekRequest, wait time.Duration, err error) {
	req = hub.PeekRequest{Actor: actorOf(r.Context())}
	if name := pathparam.Value(r, "group"); name != "" {
		group, err := s.group(name)
		if err != nil {
			return req, 0, err
		}
		req.Groups = []domain.Group{group}
	}
	values, err := query.Parse(r, "bundleId", "format", "version", "wait")
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
			return req, 0, refuse(invalid, "version: want 1 to 32 characters of A-Z a-z 0-9 . _ -, got %q", domain.Shorten(req.Version))
		}
	}
	if values.Has("wait") {
		wait, err = parseWait(values.Get("wait"), s.opts.Limits.Wait)
	}
	return req, wait, err
}

// group returns the group called name. It fails if no such group exists.
func (s *Server) group(name string) (domain.Group, error) {
	group, err := s.opts.Hub.Groups().Find(name)
	if err != nil {
		return group, &problemError{problem: unknownGroup, detail: err.Error(), cause: err}
	}
	return group, nil
}

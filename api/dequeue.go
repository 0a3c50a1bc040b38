package api

import (
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
)

// dequeue confirms that the actor has stored the bundle in the path.
func (s *Server) dequeue(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := domain.ParseBundleID(pathparam.Value(r, "bundleId"))
	if err != nil {
		return err
	}
	return s.confirm(w, r, id)
}

// confirm dequeues a bundle and responds.
func (s *Server) confirm(w http.ResponseWriter, r *http.Request, id domain.BundleID) error {
	rec := recordOf(r.Context())
	rec.note(slog.String("bundle_id", id.String()))
	rec.describeOperation("dequeue", tracing.Settle, actorOf(r.Context()))
	rec.describe(tracing.MessageID.String(id.String()))
	if err := s.checkBundle(r.Context(), id); err != nil {
		return err
	}
	bundle, err := s.opts.Hub.Dequeue(r.Context(), actorOf(r.Context()), id)
	if err != nil {
		return asNotOpen(id, err)
	}
	rec.linkTo(bundle.Peeked)
	rec.describe(tracing.BatchSize.Int(bundle.Count), tracing.Group.String(bundle.Group.String()), tracing.Origin.String(bundle.Cabinet.Origin.String()))
	s.metrics.dequeued.Add(float64(bundle.Count))
	rec.note(slog.Int("events", bundle.Count))
	s.setBacklogHeaders(w.Header(), bundle.Remaining)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

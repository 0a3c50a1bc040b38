package api

import (
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/domain"
)

// dequeue confirms that the actor holds a bundle safely.
func (s *Server) dequeue(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	id, err := domain.ParseBundleID(chi.URLParam(r, "bundleId"))
	if err != nil {
		return err
	}
	rec := recordOf(r.Context())
	rec.note(slog.String("bundle_id", id.String()))
	bundle, err := s.opts.Hub.Dequeue(r.Context(), actorOf(r.Context()), id)
	if domain.KindOf(err) == domain.NotFound {
		// Unknown, another actor's and dequeued before are one answer, so that
		// nobody learns of bundles that are not theirs.
		return &problemError{problem: notFound, detail: "No bundle " + id.String() + " is open for this actor.", cause: err}
	}
	if err != nil {
		return err
	}
	s.metrics.dequeued.Add(float64(bundle.Count))
	rec.note(slog.Int("events", bundle.Count))
	s.tellBacklog(w.Header(), bundle.Behind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

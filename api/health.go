package api

import (
	"context"
	"net/http"
)

type status struct {
	Status string `json:"status"`
}

// healthz says that the process serves requests, whatever it depends on.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, status{"ok"})
	return nil
}

// readyz says whether requests should be sent here.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.isReady(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, status{"ready"})
	return nil
}

func (s *Server) isReady(ctx context.Context) error {
	if s.draining.Err() != nil {
		return refuse(notReady, "The hub is about to stop; send requests to another node.")
	}
	if err := s.opts.Ready(ctx); err != nil {
		return &problemError{problem: notReady, cause: err}
	}
	return nil
}

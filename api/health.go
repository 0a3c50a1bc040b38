package api

import "net/http"

type status struct {
	Status   string        `json:"status"`
	Warnings []FailedCheck `json:"warnings,omitempty"`
}

// healthz says that the process serves requests, whatever it depends on.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, status{Status: "ok"})
	return nil
}

// readyz reports whether requests should be sent to this node. If they should, it also
// reports warnings for operators.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkReadiness(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, status{Status: "ready", Warnings: s.opts.Warnings()})
	return nil
}

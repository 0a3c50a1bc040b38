package api

import "net/http"

type status struct {
	Status   string        `json:"status"`
	Build    *Build        `json:"build,omitempty"`
	Warnings []FailedCheck `json:"warnings,omitempty"`
}

// ContractVersion is the version of the HTTP interface, as the OpenAPI document states it. It rises when the
// interface changes.
const ContractVersion = "1"

// A Build is what /readyz reports about the program of the node and the level of the store. The
// level of the store rises when all nodes support the next level.
type Build struct {
	Version        string `json:"version"`
	API            string `json:"api"`   // ContractVersion
	Level          int    `json:"level"` // the highest level that the program supports
	StoreLevel     int    `json:"storeLevel"`
	AnnouncedLevel int    `json:"announcedLevel,omitempty"` // level of an upgrade that has begun
}

// healthz reports that the process serves requests. It checks nothing that the
// process depends on.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, status{Status: "ok"})
	return nil
}

// readyz reports whether this node should receive requests. If so, it also reports the version of
// the node, and warnings for operators.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkReadiness(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, status{Status: "ready", Build: s.opts.Build(), Warnings: s.opts.Warnings()})
	return nil
}

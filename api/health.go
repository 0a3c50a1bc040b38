package api

import "net/http"

type status struct {
	Status   string        `json:"status"`
	Build    *Build        `json:"build,omitempty"`
	Warnings []FailedCheck `json:"warnings,omitempty"`
}

// ContractVersion is the version of the HTTP interface that the OpenAPI document states. It
// increases when the interface changes.
const ContractVersion = "1"

// A Build describes the program of this node and the level of the store, for /readyz. The level of
// the store increases when all nodes support the next level.
type Build struct {
	Version        string `json:"version"`
	API            string `json:"api"`   // ContractVersion
	Level          int    `json:"level"` // highest store level that the program supports
	StoreLevel     int    `json:"storeLevel"`
	AnnouncedLevel int    `json:"announcedLevel,omitempty"` // level of the store to which an upgrade has begun
}

// healthz reports that the process serves requests. It does not check anything on which the process
// depends.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, status{Status: "ok"})
	return nil
}

// readyz reports whether this node should receive requests. If so, the response also contains the
// version of the node, and warnings for operators.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkReadiness(r.Context()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, status{Status: "ready", Build: s.opts.Build(), Warnings: s.opts.Warnings()})
	return nil
}

package api

import "net/http"

// requireObjects refuses requests while the hub has no store for objects.
func (s *Server) requireObjects(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Objects == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

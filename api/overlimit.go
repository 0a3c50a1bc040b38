package api

import (
	"net/http"
	"slices"
)

// refuseOverLimit refuses requests on connections above the limit of the server. It admits only
// probes, so that operators see that the hub is alive.
func (s *Server) refuseOverLimit(next http.Handler) http.Handler {
	if s.opts.OverLimit == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.opts.OverLimit(r.Context()) {
			next.ServeHTTP(w, r)
			return
		}
		if !slices.Contains(polledRoutes, r.URL.Path) {
			s.fail(w, r, &problemError{problem: busy, close: true, detail: "The hub, or the address of this client, has as many connections as it may have. " +
				"Use fewer connections, and repeat the request after a pause."})
			return
		}
		w.Header().Set("Connection", "close")
		next.ServeHTTP(w, r)
	})
}

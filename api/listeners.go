package api

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/docs"
)

// A RouteSet is the set of routes that a listener serves.
type RouteSet int

// Sets of routes. Each set includes the probes, the OpenAPI document and the guide for clients.
const (
	AllRoutes      RouteSet = iota
	PublicRoutes            // all routes except those for operators
	OperatorRoutes          // only the routes for operators and their tools
)

// HandlerOf returns the handler for a listener that serves the given routes. isOwnHost is the
// Options.IsOwnHost of that listener.
func (s *Server) HandlerOf(set RouteSet, isOwnHost func(host string) bool) http.Handler {
	return s.routes(set, isOwnHost)
}

// onlyRoutes responds to paths outside of set as if they did not exist.
func (s *Server) onlyRoutes(set RouteSet) func(http.Handler) http.Handler {
	detail := "Operators' routes are at another address of this hub: its setting admin-listen."
	if set == OperatorRoutes {
		detail = "This address is for operators. Actors and domains use another one of this hub: its setting listen."
	}
	return func(next http.Handler) http.Handler {
		if set == AllRoutes {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if set != setOf(r.URL.Path) && !isOnEachListener(r.URL.Path) {
				s.fail(w, r, refuse(noRoute, "There is nothing at this path. %s", detail))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// setOf returns the set of routes to which a path belongs.
func setOf(path string) RouteSet {
	if path == "/" { // this path redirects to the console
		return OperatorRoutes
	}
	for _, root := range [...]string{"/v1/admin", "/metrics", consolePath, "/debug"} {
		if below, ok := strings.CutPrefix(path, root); ok && (below == "" || below[0] == '/') {
			return OperatorRoutes
		}
	}
	if topic, ok := strings.CutPrefix(path, docsPath); ok {
		if page, exists := docs.Find(topic); exists && page.ForOperator {
			return OperatorRoutes
		}
	}
	return PublicRoutes
}

func isOnEachListener(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/openapi.json", "/openapi.yaml", docsRoot:
		return true
	}
	return strings.HasPrefix(path, docsPath) && setOf(path) != OperatorRoutes
}

package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/api/docs"
)

// Paths of the pages of the guide and the handbook.
const (
	docsRoot = "/docs"
	docsPath = docsRoot + "/"
)

// siteOf returns the pages on a listener that serves the given routes. A listener for actors and
// domains has only the guide, because the handbook is for operators.
func siteOf(set RouteSet) func() *docs.Site {
	if set == PublicRoutes {
		return docs.ForClients
	}
	return docs.ForOperators
}

// foldDocs makes the path of the index with a trailing slash, which links contain, equivalent to
// the path without it.
func foldDocs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == docsPath {
			chi.RouteContext(r.Context()).RoutePath = docsRoot
		}
		next.ServeHTTP(w, r)
	})
}

// serveDocsIndex returns a handler that responds with the list of all pages.
func serveDocsIndex(site func() *docs.Site) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		index := docs.Index
		if r.URL.Path == docsRoot {
			index = docs.IndexWithoutSlash
		}
		site().Serve(w, r, index)
		return nil
	}
}

// serveDocsPage returns a handler that responds with a page or the style sheet.
func serveDocsPage(site func() *docs.Site) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !site().Serve(w, r, chi.URLParam(r, "page")) {
			return refuse(noRoute, "There is no such page. GET /docs/ lists the pages.")
		}
		return nil
	}
}

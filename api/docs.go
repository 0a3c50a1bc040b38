package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/api/docs"
)

// The pages of the guide and of the handbook are below docsPath.
const (
	docsRoot = "/docs"
	docsPath = docsRoot + "/"
)

// siteOf returns the pages of a listener with a set of routes: those of the handbook are for
// operators, so the listener for actors and domains has only the guide.
func siteOf(set RouteSet) func() *docs.Site {
	if set == PublicRoutes {
		return docs.ForClients
	}
	return docs.ForOperators
}

// foldDocs lets the path of the index end with a slash, as it does in links to it.
func foldDocs(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == docsPath {
			chi.RouteContext(r.Context()).RoutePath = docsRoot
		}
		next.ServeHTTP(w, r)
	})
}

// serveDocsIndex returns a handler that answers with the list of all pages.
func serveDocsIndex(site func() *docs.Site) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		index := docs.Index
		if r.URL.Path == docsRoot {
			index = docs.IndexAbove
		}
		site().Serve(w, r, index)
		return nil
	}
}

// serveDocsPage returns a handler that answers with a page, or with the style sheet.
func serveDocsPage(site func() *docs.Site) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !site().Serve(w, r, chi.URLParam(r, "page")) {
			return refuse(noRoute, "There is no such page. GET /docs/ lists the pages.")
		}
		return nil
	}
}

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
// operators, so the listener for actors and domains has the guide alone.
func siteOf(set RouteSet) func() *docs.Site {
	if set == PublicRoutes {
		return docs.ForClients
	}
	return docs.ForOperators
}

// serveDocs returns a handler that answers with a page, or with the index of all pages.
func serveDocs(site func() *docs.Site) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name := chi.URLParam(r, "page")
		if !site().Serve(w, r, name) {
			return refuse(noRoute, "There is no such page. GET /docs/ lists the pages.")
		}
		return nil
	}
}

// redirectToDocs answers the path of the index without its last slash, from which relative links
// would lead elsewhere.
func redirectToDocs(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", "docs/") // relative, because a proxy may serve the hub below a path
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

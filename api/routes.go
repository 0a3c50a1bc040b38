package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// routes returns the router of every route there is.
func (s *Server) routes() chi.Router {
	r := chi.NewRouter()
	r.Use(s.identify, s.observe, s.recoverPanics, s.deadline, s.localOnly)
	r.NotFound(s.handle(noSuchRoute))
	r.MethodNotAllowed(s.handle(methodNotAllowed))

	// Domains announce events.
	r.Post("/v1/data-available", s.handle(s.postDataAvailable))

	// Actors fetch bundles and confirm them. HEAD is not offered: a Peek opens a bundle.
	r.Group(func(r chi.Router) {
		r.Use(s.requireActor)
		r.Get("/v1/peek", s.handle(s.peek))
		r.Get("/v1/peek/{group}", s.handle(s.peek))
		r.Delete("/v1/dequeue/{bundleId}", s.handle(s.dequeue))
		r.Get("/v1/queues", s.handle(s.queues))
	})

	// Operators help queues that are stuck, and check what is stored.
	r.Group(func(r chi.Router) {
		r.Use(s.requireOperator)
		r.Post("/v1/admin/check", s.handle(s.check))
		r.Group(func(r chi.Router) {
			r.Use(s.aboutActor)
			r.Get("/v1/admin/queues/{actor}", s.handle(s.inspect))
			r.Get("/v1/admin/queues/{actor}/records", s.handle(s.records))
			r.Post("/v1/admin/queues/{actor}/release", s.handle(s.release))
			r.Post("/v1/admin/queues/{actor}/skip", s.handle(s.skip))
			r.Post("/v1/admin/queues/{actor}/replay", s.handle(s.replay))
			r.Post("/v1/admin/queues/{actor}/freeze", s.handle(s.freeze))
			r.Post("/v1/admin/queues/{actor}/thaw", s.handle(s.thaw))
		})
	})

	// Operators and their tools look.
	look := func(pattern string, h http.HandlerFunc) {
		r.Get(pattern, h)
		r.Head(pattern, h)
	}
	look("/healthz", s.handle(s.healthz))
	look("/readyz", s.handle(s.readyz))
	look("/metrics", promhttp.HandlerFor(s.opts.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP)
	look("/openapi.json", s.handle(openAPIJSON))
	look("/openapi.yaml", s.handle(openAPIYAML))
	return r
}

func noSuchRoute(http.ResponseWriter, *http.Request) error {
	return refuse(noRoute, "There is nothing at this path. GET /openapi.json lists what there is.")
}

// methodNotAllowed answers a path that exists with other methods, and names
// them in the header Allow.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	routes := chi.RouteContext(r.Context()).Routes
	var allowed []string
	for _, method := range [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		if routes.Match(chi.NewRouteContext(), method, path) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return noSuchRoute(w, r)
	}
	w.Header()["Allow"] = []string{joinWords(allowed)}
	return refuse(wrongMethod, "This path answers %s.", joinWords(allowed))
}

package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/messagehub/messagehub/api/broker"
	"github.com/messagehub/messagehub/api/docs"
	"github.com/messagehub/messagehub/domain"
)

// routes returns the router for a listener. It knows all routes, but serves only those of set.
func (s *Server) routes(set RouteSet, isOwnHost func(host string) bool) chi.Router {
	r := chi.NewRouter()
	r.Use(foldOriginal, foldDocs, s.identify, s.observe, s.recoverPanics, s.deadline, s.refuseOverLimit, s.localOnly(isOwnHost), s.onlyRoutes(set), s.limitRequests)
	r.NotFound(s.handle(noSuchRoute))
	r.MethodNotAllowed(s.handle(methodNotAllowed))
	r.Group(func(r chi.Router) { s.addRoutes(r, siteOf(set)) })
	return r
}

// addRoutes adds all routes to r. Each of them must have a row in the table rights.
func (s *Server) addRoutes(r chi.Router, site func() *docs.Site) {
	r.Use(s.authorize)

	// Domains announce events.
	r.Post("/v1/data-available", s.handle(s.postDataAvailable))

	handleGetAndHead := func(r chi.Router, pattern string, h http.HandlerFunc) {
		r.Get(pattern, h)
		r.Head(pattern, h)
	}

	// Actors fetch bundles and confirm them.
	r.Group(func(r chi.Router) {
		r.Use(s.requireActor(s.handle))
		handleGetAndHead(r, "/v1/peek", s.handle(s.peek))
		handleGetAndHead(r, "/v1/peek/{group}", s.handle(s.peek))
		handleGetAndHead(r, "/v1/bundles/{bundleId}", s.handle(s.bundle))
		r.Delete("/v1/dequeue/{bundleId}", s.handle(s.dequeue))
		r.Get("/v1/queues", s.handle(s.queues))
	})

	// Senders publish events.
	r.With(s.requireEvents).Post("/v1/events", s.handle(s.postEvents))

	// Object stores report changes of their objects. The CloudEvents handshake needs no token.
	r.Group(func(r chi.Router) {
		r.Use(s.requireObjects)
		r.With(s.requireOperator).Post(objectEventsPath, s.handle(s.postObjectEvents))
		r.Options(objectEventsPath, s.handle(s.allowObjectEvents))
	})

	// Actors subscribe to events.
	r.Group(func(r chi.Router) {
		r.Use(s.requireActor(s.handle), s.requireSubscriptions, s.hideOtherGroups)
		r.Get("/v1/subscriptions", s.handle(s.listSubscriptions))
		r.Post("/v1/subscriptions", s.handle(s.createSubscription))
		r.Put("/v1/subscriptions", s.handle(s.createSubscription))
		r.Get("/v1/subscriptions/{subscriptionId}", s.handle(s.getSubscription))
		r.Put("/v1/subscriptions/{subscriptionId}", s.handle(s.putSubscription))
		r.Delete("/v1/subscriptions/{subscriptionId}", s.handle(s.deleteSubscription))
		r.Post("/v1/subscriptions/{subscriptionId}/pause", s.handle(s.pauseSubscription))
		r.Post("/v1/subscriptions/{subscriptionId}/resume", s.handle(s.resumeSubscription))
		r.With(s.requireDeliveries).Post("/v1/subscriptions/{subscriptionId}/test", s.handle(s.testSubscription))
		r.Post("/v1/subscriptions/{subscriptionId}/rotate", s.handle(s.rotateSubscription))
	})

	// Actors and operators read the state of deliveries.
	r.Group(func(r chi.Router) {
		r.Use(s.requireReader, s.requireDeliveries, s.hideOtherGroups)
		r.Get("/v1/deliveries", s.handle(s.listDeliveries))
		r.Get("/v1/deliveries/{deliveryId}", s.handle(s.getDelivery))
		r.Get("/v1/deliveries/{deliveryId}/explain", s.handle(s.explainDelivery))
	})

	// Actors repeat deliveries.
	r.Group(func(r chi.Router) {
		r.Use(s.requireActor(s.handle), s.requireReplays, s.hideOtherGroups)
		r.Post("/v1/deliveries/{deliveryId}/replay", s.handle(s.replayDelivery))
		r.Post("/v1/subscriptions/{subscriptionId}/replays", s.handle(s.startReplay))
		r.Get("/v1/subscriptions/{subscriptionId}/replays/{replayId}", s.handle(s.getReplay))
		r.Delete("/v1/subscriptions/{subscriptionId}/replays/{replayId}", s.handle(s.stopReplay))
	})

	// Actors watch resources: the hub calls them when a resource changes. Documents that clients
	// store are resources, too.
	r.Group(func(r chi.Router) {
		r.Use(s.requireActor(s.handle), s.requireWatches, s.hideOtherGroups)
		r.Get(watchesPath, s.handle(s.listWatches))
		r.Post(watchesPath, s.handle(s.createWatch))
		r.Get(watchesPath+"/{watchId}", s.handle(s.getWatch))
		r.Get(watchesPath+"/{watchId}/attempts", s.handle(s.watchAttempts))
		r.Put(watchesPath+"/{watchId}", s.handle(s.putWatch))
		r.Delete(watchesPath+"/{watchId}", s.handle(s.deleteWatch))
		handleGetAndHead(r, "/v1/resources/{name}", s.handle(s.getResource))
		r.Put("/v1/resources/{name}", s.handle(s.putResource))
		r.Delete("/v1/resources/{name}", s.handle(s.deleteResource))
	})

	// Readers list object events, and the current state of the objects.
	r.Group(func(r chi.Router) {
		r.Use(s.requireObjects, s.requireObjectReader)
		r.Get(objectsPath, s.handle(s.listObjects))
		r.Get(objectsPath+"/count", s.handle(s.countObjects))
		r.Get(objectsPath+"/{objectId}", s.handle(s.getObject))
		r.Get(objectsPath+"/{objectId}/history", s.handle(s.objectHistory))
	})
	r.With(s.requireOperator, s.requireObjects).Patch(objectsPath+"/{objectId}", s.handle(s.patchObject))
	r.With(s.requireOperator, s.requireObjects).Get(objectsPath+"/{objectId}/link", s.handle(s.linkObject))

	// Producers send messages to channels of the webhook broker, which calls the consumers of a
	// channel.
	r.Group(func(r chi.Router) {
		r.Use(s.requireBroker)
		broker.Mount(r, s.opts.Broker, brokerHost{s})
	})

	// Operators compare object stores with the ledger, and change many objects in one job.
	r.Group(func(r chi.Router) {
		r.Use(s.requireOperator, s.requireObjects)
		r.Get(crawlsPath, s.handle(s.listJobs(domain.CrawlJob)))
		r.Post(crawlsPath, s.handle(s.startCrawl))
		r.Get(crawlsPath+"/{jobId}", s.handle(s.getJob(domain.CrawlJob)))
		r.Delete(crawlsPath+"/{jobId}", s.handle(s.stopJob(domain.CrawlJob)))
		r.Get(inventoriesPath, s.handle(s.listJobs(domain.InventoryJob)))
		r.Post(inventoriesPath, s.handle(s.startInventory))
		r.Get(inventoriesPath+"/{jobId}", s.handle(s.getJob(domain.InventoryJob)))
		r.Delete(inventoriesPath+"/{jobId}", s.handle(s.stopJob(domain.InventoryJob)))
		r.Get(patchesPath, s.handle(s.listJobs(domain.PatchJob)))
		r.Post(patchesPath, s.handle(s.startPatch))
		r.Get(patchesPath+"/{jobId}", s.handle(s.getJob(domain.PatchJob)))
		r.Delete(patchesPath+"/{jobId}", s.handle(s.stopJob(domain.PatchJob)))
	})

	// Clients of the original peek and dequeue in the original's format.
	r.Group(func(r chi.Router) {
		r.Use(s.requireActor(s.original))
		handleGetAndHead(r, "/api/peek", s.original(s.originalPeek("")))
		for _, group := range [...]string{"timeseries", "masterdata", "aggregations"} {
			handleGetAndHead(r, "/api/peek/"+group, s.original(s.originalPeek(group)))
		}
		r.Delete("/api/dequeue", s.original(s.originalDequeue))
	})
	handleGetAndHead(r, "/api/monitor/live", s.handle(s.live))
	handleGetAndHead(r, "/api/monitor/ready", s.handle(s.ready))

	// Operators repair stuck mailboxes, and check the stored data.
	r.Group(func(r chi.Router) {
		r.Use(s.requireOperator)
		r.Post("/v1/admin/check", s.handle(s.check))
		r.Get("/v1/admin/backup", s.handle(s.backup))
		r.Get(profilesPath, s.handle(s.profile))
		r.Get(logLevelPath, s.handle(s.getLogLevel))
		r.Put(logLevelPath, s.handle(s.putLogLevel))
		r.Get("/v1/admin/queues", s.handle(s.listMailboxes))
		r.Get(findPath, s.handle(s.find))
		r.Group(func(r chi.Router) {
			r.Use(s.requireDeadLetters)
			r.Get(deadLettersPath, s.handle(s.listDeadLetters))
			r.Delete(deadLettersPath+"/{queue}", s.handle(s.deleteDeadLetters))
			r.Post(deadLettersPath+"/{queue}/resend", s.handle(s.resendDeadLetters))
			r.Get(deadLettersPath+"/{queue}/records", s.handle(s.deadLetterRecords))
			r.Get(deadLettersPath+"/{queue}/{sequenceNumber}", s.handle(s.getDeadLetter))
			r.Delete(deadLettersPath+"/{queue}/{sequenceNumber}", s.handle(s.deleteDeadLetter))
			r.Post(deadLettersPath+"/{queue}/{sequenceNumber}/resend", s.handle(s.resendDeadLetter))
		})
		r.Group(func(r chi.Router) {
			r.Use(s.aboutActor)
			r.Get("/v1/admin/queues/{actor}", s.handle(s.inspect))
			r.Get("/v1/admin/queues/{actor}/records", s.handle(s.records))
			r.Post("/v1/admin/queues/{actor}/release", s.handle(s.release))
			r.Post("/v1/admin/queues/{actor}/skip", s.handle(s.skip))
			r.Post("/v1/admin/queues/{actor}/replay", s.handle(s.replay))
			r.Post("/v1/admin/queues/{actor}/abandon", s.handle(s.abandon))
			r.Post("/v1/admin/queues/{actor}/freeze", s.handle(s.freeze))
			r.Post("/v1/admin/queues/{actor}/thaw", s.handle(s.thaw))
		})
	})

	// Operators use the console.
	if s.opts.Console != nil {
		s.opts.Console.Mount(r, consoleHost{s})
	}

	// Probes and operators' tools read the state of the hub.
	handleGetAndHead(r, "/healthz", s.handle(s.healthz))
	handleGetAndHead(r, "/readyz", s.handle(s.readyz))
	handleGetAndHead(r, "/metrics", newMetricsHandler(s.opts.Gatherer, s.opts.Clock).ServeHTTP)
	handleGetAndHead(r, "/openapi.json", s.handle(openAPIJSON))
	handleGetAndHead(r, "/openapi.yaml", s.handle(openAPIYAML))
	handleGetAndHead(r, docsRoot, s.handle(serveDocsIndex(site)))
	handleGetAndHead(r, docsPath+"{page}", s.handle(serveDocsPage(site)))
}

// patternsOf returns the patterns of a router's routes. A pattern occurs once for each of its
// methods.
func patternsOf(router chi.Router) (patterns []string) {
	_ = chi.Walk(router, func(_ string, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		patterns = append(patterns, pattern)
		return nil
	}) // Walk fails only if its function fails
	return patterns
}

func noSuchRoute(http.ResponseWriter, *http.Request) error {
	return refuse(noRoute, "There is nothing at this path. GET /openapi.json lists all paths.")
}

// methodNotAllowed refuses a request whose path has only other methods, which it lists in the
// header Allow.
func methodNotAllowed(w http.ResponseWriter, r *http.Request) error {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	routes := chi.RouteContext(r.Context()).Routes
	var allowed []string
	for _, method := range [...]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
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

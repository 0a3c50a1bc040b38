package api

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
	"github.com/messagehub/messagehub/api/internal/objectjson"
)

// edgeMetrics contains the metrics of the HTTP interface. No label has values that come from
// requests.
type edgeMetrics struct {
	inFlight    prometheus.Gauge
	waiting     prometheus.Gauge
	duration    *prometheus.HistogramVec // route, status
	slowClients *prometheus.CounterVec   // the label action is send or read
	stalled     *prometheus.CounterVec   // the label memory is requests or answers
	received    *prometheus.CounterVec   // route
	sent        *prometheus.CounterVec   // route
	published   *prometheus.CounterVec   // outcome
	rateLimited *prometheus.CounterVec   // the label unit is requests or events
	problems    *prometheus.CounterVec   // problem
	badTokens   *prometheus.CounterVec   // the label reason is a tokenRefusal

	objectEvents        *prometheus.CounterVec // outcome
	objectEventsRefused *prometheus.CounterVec // reason

	events           *hubmetrics.Events
	peeked, dequeued prometheus.Counter // events

	loginsFailed, loginsRefused prometheus.Counter

	backlog      prometheus.Histogram // events
	peekDuration prometheus.Histogram
}

// newMetrics returns the metrics. All series of a counter exist from the start, except the series
// of routes, which [edgeMetrics.addRoute] creates.
func newMetrics(registerer prometheus.Registerer) *edgeMetrics {
	m := registerMetrics(registerer)
	hubmetrics.Initialize(m.slowClients, []string{"send", "read"})
	hubmetrics.Initialize(m.rateLimited, []string{"requests", "events"})
	hubmetrics.Initialize(m.published, []string{"accepted", "duplicate", "conflict"})
	hubmetrics.Initialize(m.objectEvents, []string{"stored", "duplicate", "ignored", "too-old", "refused"})
	hubmetrics.Initialize(m.objectEventsRefused, append(slices.Clip(objectjson.Reasons), string(invalid)))
	hubmetrics.Initialize(m.badTokens, tokenRefusals)
	for problem := range problems {
		m.problems.WithLabelValues(string(problem))
	}
	return m
}

// addRoute creates the series of a route, with the value 0.
func (m *edgeMetrics) addRoute(route string) {
	m.received.WithLabelValues(route)
	m.sent.WithLabelValues(route)
}

func registerMetrics(registerer prometheus.Registerer) *edgeMetrics {
	make := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return make.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	byRoute := func(name, help string) *prometheus.CounterVec {
		return make.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"route"})
	}
	return &edgeMetrics{
		inFlight: make.NewGauge(prometheus.GaugeOpts{
			Name: "messagehub_http_requests_in_flight",
			Help: "HTTP requests being served.",
		}),
		waiting: make.NewGauge(prometheus.GaugeOpts{
			Name: "messagehub_http_peeks_waiting",
			Help: "HTTP requests that wait for data to come.",
		}),
		duration: make.NewHistogramVec(withNativeBuckets(prometheus.HistogramOpts{
			Name:    "messagehub_http_request_duration_seconds",
			Help:    "From the header of a request to the end of its answer, by route and status (aborted: the connection was given up).",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}), []string{"route", "status"}),
		slowClients: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_http_slow_clients_total",
			Help: "Requests that were cut off because their client sent the body or read the answer too slowly.",
		}, []string{"action"}),
		stalled: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_http_stalled_clients_total",
			Help: "Requests that were cut off because their client was slow while others waited for memory.",
		}, []string{"memory"}),
		received: byRoute("messagehub_http_received_bytes_total", "Bytes of request bodies that were read."),
		sent:     byRoute("messagehub_http_sent_bytes_total", "Bytes of response bodies that were written."),

		rateLimited: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_http_rate_limited_total",
			Help: "Requests that were refused because their client has sent more requests, or more events, in a second than it may.",
		}, []string{"unit"}),

		problems: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_http_problems_total",
			Help: "Requests that were answered with a problem, by its type: what is refused, and each limit that was reached.",
		}, []string{"problem"}),
		badTokens: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_tokens_refused_total",
			Help: "Requests refused because of their token, by reason: missing, ambiguous, invalid, missing-role, too-many (after others from the address), issuer-unavailable.",
		}, []string{"reason"}),

		published: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_push_events_total",
			Help: "Events sent to topics, by outcome: accepted, duplicate, or conflict (sent before with other content).",
		}, []string{"outcome"}),

		objectEvents: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_object_events_total",
			Help: "Events of objects that came by HTTP, by outcome: stored, duplicate, too-old (not stored, for objects.retention), refused (it can never be stored), or ignored (its name says nothing about an object).",
		}, []string{"outcome"}),
		objectEventsRefused: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_object_events_refused_total",
			Help: "Events of objects that came by HTTP and can never be stored, by reason.",
		}, []string{"reason"}),

		events:   hubmetrics.NewEvents(registerer, hubmetrics.HTTP),
		peeked:   counter("messagehub_events_peeked_total", "Events in the bodies of bundles handed out, repetitions included."),
		dequeued: counter("messagehub_events_dequeued_total", "Events in bundles that were dequeued."),

		loginsFailed:  counter("messagehub_operator_logins_failed_total", "Requests of operators without the right token."),
		loginsRefused: counter("messagehub_operator_logins_refused_total", "Requests of operators refused because of failed logins from the same address."),

		backlog: make.NewHistogram(withNativeBuckets(prometheus.HistogramOpts{
			Name:    "messagehub_peek_backlog_events",
			Help:    "Backlog of each Peek: events that wait behind the bundle in the groups that were asked for, as in the header MessageHub-Backlog.",
			Buckets: []float64{0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000},
		})),
		peekDuration: make.NewHistogram(withNativeBuckets(prometheus.HistogramOpts{
			Name:    "messagehub_peek_duration_seconds",
			Help:    "Time that the hub itself needs for a Peek, without the wait for data and for a domain that makes content.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		})),
	}
}

// withNativeBuckets adds exponential buckets to a histogram, for a Prometheus server that requests
// native histograms.
func withNativeBuckets(opts prometheus.HistogramOpts) prometheus.HistogramOpts {
	opts.NativeHistogramBucketFactor = 1.1
	opts.NativeHistogramMaxBucketNumber = 100
	opts.NativeHistogramMinResetDuration = time.Hour
	return opts
}

// observeRequest counts a request and its problem. trace is the id of the request's trace, and
// becomes an exemplar; "" means that none exists.
func (m *edgeMetrics) observeRequest(route string, problem problemType, o responseFacts, trace string) {
	if problem != "" {
		m.problems.WithLabelValues(string(problem)).Inc()
	}
	duration := m.duration.WithLabelValues(route, o.status)
	if observer, ok := duration.(prometheus.ExemplarObserver); ok && trace != "" {
		observer.ObserveWithExemplar(o.duration.Seconds(), prometheus.Labels{"trace_id": trace})
	} else {
		duration.Observe(o.duration.Seconds())
	}
	m.received.WithLabelValues(route).Add(float64(o.received))
	m.sent.WithLabelValues(route).Add(float64(o.sent))
}

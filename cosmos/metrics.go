package cosmos

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what the hub asks of Cosmos. Request units are what it pays for.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	units    *prometheus.CounterVec
	retries  *prometheus.CounterVec
	repairs  *prometheus.CounterVec
	dropped  prometheus.Counter
	swept    *prometheus.CounterVec

	refusedFormats prometheus.Counter
	newerMailboxes prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_cosmos_requests_total",
			Help: "Requests to Cosmos, by operation of the hub, container and status (0: no answer).",
		}, []string{"operation", "container", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "messagehub_cosmos_request_duration_seconds",
			Help:    "Duration of one request to Cosmos, by operation of the hub and class of its status (none: no answer).",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},

			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, []string{"operation", "status"}),
		units: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_cosmos_request_units_total",
			Help: "Request units charged by Cosmos, by operation of the hub and container.",
		}, []string{"operation", "container"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_cosmos_retries_total",
			Help: "Retries of requests and restarts of operations, by operation of the hub.",
		}, []string{"operation"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_repairs_total",
			Help: "What was mended on sight: rollback (of another writer's intent), seal, pointer.",
		}, []string{"what"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "messagehub_hints_dropped_total",
			Help: "Hints that were not written because too many were waiting; the next Peek mends them.",
		}),
		swept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_swept_total",
			Help: "What the sweep has removed because it was acknowledged long enough ago: drawer, or document (page or filter) in one.",
		}, []string{"what"}),
	}
	m.refusedFormats = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "messagehub_newer_format_documents_total",
		Help: "Documents read that have a format that only newer versions know; nothing was written to their mailboxes.",
	})
	m.newerMailboxes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_newer_format_mailboxes",
		Help: "Mailboxes that this node leaves alone because a newer version has stored them in a format that it does not know, up to 1,000.",
	})
	if reg != nil {
		reg.MustRegister(m.requests, m.latency, m.units, m.retries, m.repairs, m.dropped, m.swept, m.refusedFormats, m.newerMailboxes)
	}
	return m
}

// called records one request, which took the time given.
func (m *metrics) called(call, container string, err error, charge float32, took time.Duration) {
	status := 200
	if err != nil {
		f := failureOf(err)
		status, charge = f.status, max(charge, f.charge)
	}
	m.latency.WithLabelValues(call, statusClass(status)).Observe(took.Seconds())
	m.requests.WithLabelValues(call, container, strconv.Itoa(status)).Inc()
	m.units.WithLabelValues(call, container).Add(float64(charge))
}

// statusClass returns the class of an HTTP status, such as 2xx.
func statusClass(status int) string {
	if status == 0 {
		return "none"
	}
	return strconv.Itoa(status/100) + "xx"
}

package cosmos

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// repairMetrics counts what the repository repairs and removes; package client counts the requests.
type repairMetrics struct {
	repairs *prometheus.CounterVec
	dropped prometheus.Counter
	swept   *prometheus.CounterVec

	refusedFormats prometheus.Counter
	newerMailboxes prometheus.Gauge
	inFront        prometheus.Gauge
	lostPages      prometheus.Gauge
	lastSweep      *prometheus.GaugeVec // has no labels, and no value until a sweep is known
}

// The kinds of repairs that requests make. The kinds that a check repairs are in repairedKinds.
const (
	rollbackRepair = "rollback"
	sealRepair     = "seal"
	pointerRepair  = "pointer"
	raiseRepair    = "raise"
)

// The kinds of objects that a sweep removes: values of a metric's label.
const (
	sweptCabinet  = "cabinet"
	sweptDrawer   = "drawer"
	sweptDocument = "document"
	sweptBundle   = "bundle"
)

// newMetrics registers the metrics. Every counter has all its series from the start.
func newMetrics(reg prometheus.Registerer) *repairMetrics {
	m := &repairMetrics{
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_repairs_total",
			Help: "Repairs of what a request found: rollback (of another writer's intent), seal, pointer, raise (of a head above a gate in front of it).",
		}, []string{"what"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "messagehub_hints_dropped_total",
			Help: "Hints that were not written because too many were waiting; the next Peek repairs them.",
		}),
		swept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_swept_total",
			Help: "What the sweep has removed because it was acknowledged long enough ago: drawer, document (page or filter) in one, cabinet of which nothing is left, or bundle that was watched.",
		}, []string{"what"}),
	}
	for _, what := range append([]string{rollbackRepair, sealRepair, pointerRepair, raiseRepair}, repairedKinds...) {
		m.repairs.WithLabelValues(what)
	}
	for _, what := range []string{sweptCabinet, sweptDrawer, sweptDocument, sweptBundle} {
		m.swept.WithLabelValues(what)
	}
	m.refusedFormats = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "messagehub_newer_format_documents_total",
		Help: "Documents read that have a format that only newer versions know; nothing was written to their mailboxes.",
	})
	m.newerMailboxes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_newer_format_mailboxes",
		Help: "Mailboxes that this node leaves alone because a newer version has stored them in a format that it does not know, up to 1,000.",
	})
	m.inFront = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_gates_in_front",
		Help: "Recipients of whom a Peek has found more acknowledged than received: the store has lost writes. Up to 1,000.",
	})
	m.lostPages = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_lost_pages",
		Help: "Recipients of whom a Peek has found a cabinet that waits because its next page is lost. Up to 1,000.",
	})
	m.lastSweep = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "messagehub_last_sweep_timestamp_seconds",
		Help: "When the last sweep of any node began, as this node has read it, in seconds since 1970.",
	}, nil)
	if reg != nil {
		reg.MustRegister(m.lastSweep, m.repairs, m.dropped, m.swept, m.refusedFormats, m.newerMailboxes, m.inFront, m.lostPages)
	}
	return m
}

// noteSweep records when a sweep began.
func (m *repairMetrics) noteSweep(began time.Time) {
	m.lastSweep.WithLabelValues().Set(float64(began.UnixMilli()) / 1000)
}

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
	sweeps  *prometheus.CounterVec

	refusedFormats prometheus.Counter
	newerMailboxes prometheus.Gauge
	inFront        prometheus.Gauge
	lostPages      prometheus.Gauge
	lastSweep      *prometheus.GaugeVec // has no labels, and no value until a sweep is known
}

// These are the kinds of repairs that requests make. The kinds that a check repairs are in repairedKinds.
const (
	rollbackRepair = "rollback"
	sealRepair     = "seal"
	pointerRepair  = "pointer"
	raiseRepair    = "raise"
)

// These are the kinds of objects that a sweep removes, as values of a metric's label.
const (
	sweptCabinet  = "cabinet"
	sweptDrawer   = "drawer"
	sweptDocument = "document"
	sweptBundle   = "bundle"
)

// These are the results of a sweep, as values of a metric's label.
const (
	completeSweep   = "complete"
	incompleteSweep = "incomplete"
)

// newMetrics registers the metrics. Every counter has all its series from the start.
func newMetrics(reg prometheus.Registerer) *repairMetrics {
	m := &repairMetrics{
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_repairs_total",
			Help: "Repairs made by requests: rollback (of another writer's intent), seal, pointer (an entry in the catalog), raise (of a head above a gate in front of it).",
		}, []string{"what"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "messagehub_hints_dropped_total",
			Help: "Hints that were not written because too many were waiting; the next Peek repairs them.",
		}),
		swept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_swept_total",
			Help: "Objects that sweeps have removed after the retention: drawer, document (a page or filter of a drawer), cabinet (without any drawers), or watched bundle.",
		}, []string{"what"}),
		sweeps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_sweeps_total",
			Help: "Sweeps of mailboxes that this node has ended, by result: complete, or incomplete (it failed).",
		}, []string{"result"}),
	}
	for _, what := range append([]string{rollbackRepair, sealRepair, pointerRepair, raiseRepair}, repairedKinds...) {
		m.repairs.WithLabelValues(what)
	}
	for _, what := range []string{sweptCabinet, sweptDrawer, sweptDocument, sweptBundle} {
		m.swept.WithLabelValues(what)
	}
	for _, result := range []string{completeSweep, incompleteSweep} {
		m.sweeps.WithLabelValues(result)
	}
	m.refusedFormats = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "messagehub_newer_format_documents_total",
		Help: "Documents read in a format that only newer versions know; this node does not write to their mailboxes.",
	})
	m.newerMailboxes = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_newer_format_mailboxes",
		Help: "Mailboxes that this node does not serve because a newer version stored them in a format that it does not know, up to 1,000.",
	})
	m.inFront = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_gates_in_front",
		Help: "Recipients for whom a Peek found more acknowledged than received events: the store has lost writes. Up to 1,000.",
	})
	m.lostPages = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_lost_pages",
		Help: "Recipients for whom a Peek found a cabinet that is blocked because its next page is lost. Up to 1,000.",
	})
	m.lastSweep = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "messagehub_last_sweep_timestamp_seconds",
		Help: "Start of the last sweep by any node, as this node has read it, in seconds since 1970.",
	}, nil)
	if reg != nil {
		reg.MustRegister(m.lastSweep, m.repairs, m.dropped, m.swept, m.sweeps, m.refusedFormats, m.newerMailboxes, m.inFront, m.lostPages)
	}
	return m
}

// recordSweepStart records when a sweep began.
func (m *repairMetrics) recordSweepStart(began time.Time) {
	m.lastSweep.WithLabelValues().Set(float64(began.UnixMilli()) / 1000)
}

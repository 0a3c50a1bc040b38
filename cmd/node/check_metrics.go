package node

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A checkMetrics exports the result of this node's last complete check. Before
// the first check, the metrics have no value.
type checkMetrics struct {
	ended    *prometheus.GaugeVec // a vector without labels, because it has no value before the first check, unlike a gauge
	findings *prometheus.GaugeVec // has no value before the first check
}

func newCheckMetrics(registerer prometheus.Registerer) *checkMetrics {
	make := promauto.With(registerer)
	return &checkMetrics{
		ended: make.NewGaugeVec(prometheus.GaugeOpts{
			Name: "messagehub_last_check_timestamp_seconds",
			Help: "When the last check of all queues ended that this node has made, in seconds since 1970.",
		}, nil),
		findings: make.NewGaugeVec(prometheus.GaugeOpts{
			Name: "messagehub_last_check_findings",
			Help: "What the last check of all queues that this node has made has found and not repaired.",
		}, nil),
	}
}

// observeChecker returns a Checker that calls next and records its result,
// unless the check is limited to one actor or resumes an earlier check.
func (m *checkMetrics) observeChecker(next hub.Checker, clock func() time.Time) hub.Checker {
	return func(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
		report, err := next(ctx, opts)
		if err == nil && opts.Actor == (domain.ActorID{}) && opts.Resume == "" {
			m.ended.WithLabelValues().Set(float64(clock().UnixMilli()) / 1000)
			m.findings.WithLabelValues().Set(float64(report.Found - report.Repaired))
		}
		return report, err
	}
}

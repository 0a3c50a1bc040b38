package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/domain/hub"
)

// registerNotices registers metrics of notices that could not be delivered.
func registerNotices(registerer prometheus.Registerer, relay *hub.NoticeRelay, now func() time.Time) {
	make := promauto.With(registerer)
	make.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "messagehub_notices_waiting",
		Help: "Notices of Dequeues and removals that this node could not deliver, and those behind them.",
	}, func() float64 { return float64(relay.Stuck().Notices) })
	make.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "messagehub_oldest_notice_age_seconds",
		Help: "How long the oldest notice has waited that this node could not deliver; 0 if it could deliver all.",
	}, func() float64 {
		oldest := relay.Stuck().Oldest
		if oldest.IsZero() {
			return 0
		}
		return max(0, now().Sub(oldest).Seconds())
	})
}

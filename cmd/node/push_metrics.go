package node

import (
	"context"
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// countWarned registers a metric for each kind of warning: how many of the
// engine's receivers have a warning of this kind.
func countWarned(engine *delivery.Engine, metrics prometheus.Registerer) {
	for _, kind := range domain.WarningKinds {
		promauto.With(metrics).NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "messagehub_push_receivers_warned",
			Help:        "Receivers that this node serves by what will go wrong: failing (for an hour), last-attempts (deliveries have few left), expiring (events within seven days).",
			ConstLabels: prometheus.Labels{"warning": kind.String()},
		}, func() float64 { return float64(engine.Warned(kind)) })
	}
}

// A meteredCaller counts the calls of the next caller and measures their
// durations.
type meteredCaller struct {
	next     delivery.Caller
	underWay prometheus.Gauge
	seconds  *prometheus.HistogramVec
}

func newMeteredCaller(next delivery.Caller, metrics prometheus.Registerer) *meteredCaller {
	factory := promauto.With(metrics)
	return &meteredCaller{
		next: next,
		underWay: factory.NewGauge(prometheus.GaugeOpts{
			Name: "messagehub_push_calls_under_way",
			Help: "Calls to receivers that have not ended.",
		}),
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "messagehub_push_call_seconds",
			Help:    "Calls to receivers by the class of the answer: 2xx to 5xx, none (no answer), or ended (by this node, which calls again).",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"answer"}),
	}
}

// Call implements [delivery.Caller].
func (m *meteredCaller) Call(ctx context.Context, call delivery.Call) domain.Answer {
	m.underWay.Inc()
	defer m.underWay.Dec()
	answer := m.next.Call(ctx, call)
	if answer.Unread || answer.Lost { // no call was made
		return answer
	}
	class := "none"
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		class = "ended"
	case answer.Status > 0:
		class = strconv.Itoa(answer.Status/100) + "xx"
	}
	m.seconds.WithLabelValues(class).Observe(answer.Took.Seconds())
	return answer
}

package client

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics counts requests to Cosmos and their request units, for each name of a call.
type requestMetrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	units    *prometheus.CounterVec
	retries  *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *requestMetrics {
	return &requestMetrics{
		requests: registerMetric(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_cosmos_requests_total",
			Help: "Requests to Cosmos, by operation of the hub, container and status (0: no answer).",
		}, []string{"operation", "container", "status"})),
		latency: registerMetric(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "messagehub_cosmos_request_duration_seconds",
			Help:    "Duration of one request to Cosmos, by operation of the hub and container.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},

			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, []string{"operation", "container"})),
		units: registerMetric(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_cosmos_request_units_total",
			Help: "Request units charged by Cosmos, by operation of the hub and container.",
		}, []string{"operation", "container"})),
		retries: registerMetric(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_cosmos_retries_total",
			Help: "Retries of requests and restarts of operations, by operation of the hub.",
		}, []string{"operation"})),
	}
}

// registerMetric registers a metric and returns it. If another client of the process has registered the
// metric, registerMetric returns the registered metric.
func registerMetric[T prometheus.Collector](reg prometheus.Registerer, metric T) T {
	if reg == nil {
		return metric
	}
	err := reg.Register(metric)
	if before, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := before.ExistingCollector.(T); ok {
			return same
		}
	}
	if err != nil {
		panic(err) // a bug: a different metric has the name
	}
	return metric
}

// addRequest counts one request of a call and its duration. It returns the charge of the request: that
// of err if the request failed, otherwise charge.
func (m *requestMetrics) addRequest(ctx context.Context, call, container string, err error, charge float32, took time.Duration) float32 {
	status := 200
	if err != nil {
		f := FailureOf(err)
		status, charge = f.status, max(charge, f.charge)
	}
	observeValue(ctx, m.latency.WithLabelValues(call, container), took.Seconds())
	m.requests.WithLabelValues(call, container, strconv.Itoa(status)).Inc()
	m.units.WithLabelValues(call, container).Add(float64(charge))
	return charge
}

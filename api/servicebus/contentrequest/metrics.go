package contentrequest

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api/internal/hubmetrics"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// requestMetrics counts the requests to domains. Its label values come from the configuration.
type requestMetrics struct {
	requests *prometheus.CounterVec // origin, outcome
	duration *prometheus.HistogramVec
	refusals *prometheus.CounterVec // origin, reason
}

// Outcomes of a request. A reply without content has its reason as the outcome.
const (
	hasContent    = "content"
	isBusy        = "busy"
	isUnavailable = "unavailable"
	wasLeft       = "left"
	noAnswer      = "no-answer"
)

// newRequestMetrics returns metrics that contain a series for each origin from the start.
func newRequestMetrics(registerer prometheus.Registerer, origins []domain.Origin) *requestMetrics {
	m := registerRequestMetrics(registerer)
	for _, origin := range origins {
		hubmetrics.Initialize(m.requests, []string{origin.String()},
			[]string{hasContent, isBusy, isUnavailable, wasLeft, noAnswer, datasetNotFound, datasetNotAvailable, internalError, malformedReply})
		hubmetrics.Initialize(m.refusals, []string{origin.String()}, []string{malformedReply, foreignRequest, foreignBundle})
	}
	return m
}

func registerRequestMetrics(registerer prometheus.Registerer) *requestMetrics {
	make := promauto.With(registerer)
	return &requestMetrics{
		requests: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_servicebus_requests_total",
			Help: "Requests to domains for content, by origin and outcome: content; what the domain says it failed with; malformed-reply; no-answer; left (by the actor); busy or unavailable (the bus).",
		}, []string{"origin", "outcome"}),
		duration: make.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "messagehub_servicebus_request_duration_seconds",
			Help:    "How long the hub waited for a domain, by origin and outcome.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30},

			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, []string{"origin", "outcome"}),
		refusals: make.NewCounterVec(prometheus.CounterOpts{
			Name: "messagehub_servicebus_replies_refused_total",
			Help: "Messages in the session of a reply that were none, by origin and reason: malformed-reply, foreign-request, foreign-bundle.",
		}, []string{"origin", "reason"}),
	}
}

func (m *requestMetrics) countRequest(origin domain.Origin, outcome string, took time.Duration) {
	m.requests.WithLabelValues(origin.String(), outcome).Inc()
	m.duration.WithLabelValues(origin.String(), outcome).Observe(took.Seconds())
}

func (m *requestMetrics) countRefused(origin domain.Origin, reason string) {
	m.refusals.WithLabelValues(origin.String(), reason).Inc()
}

// outcomeOf returns the outcome of a request as the value of a label.
func outcomeOf(reply hub.Reply, err error) string {
	switch {
	case err == nil && reply.URI != "":
		return hasContent
	case err == nil:
		return reply.Failure.Reason
	case domain.KindOf(err) == domain.Busy:
		return isBusy
	case domain.KindOf(err) != domain.Unknown:
		return isUnavailable
	case errors.Is(err, context.Canceled):
		return wasLeft
	default:
		return noAnswer
	}
}

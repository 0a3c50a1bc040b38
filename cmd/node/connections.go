package node

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

// A descriptorPlan limits the connections of each listener, so that enough file
// descriptors remain for the engines' files, for content that is being read,
// and for connections to Azure.
type descriptorPlan struct {
	hub   int // connections of actors, domains and operators over HTTP
	bus   int // connections of domains to the embedded bus
	blobs int // connections of domains to the embedded storage account
}

const (
	maxHubConnections    = 14_000 // three quarters of these connections may be 10,000 long polls
	maxDomainConnections = 1000   // maximum for each of the two listeners for domains
	maxOtherFiles        = 1024

	maxOperatorConnections = 128
	minBusConnections      = 32 // the hub itself uses a quarter of these connections
)

// planDescriptors divides the process's file descriptors among its listeners.
func planDescriptors(limit int) descriptorPlan {
	others := min(limit/4, maxOtherFiles)
	perListener := min(limit/8, maxDomainConnections)
	return descriptorPlan{hub: max(1, min(limit-others-2*perListener, maxHubConnections)), bus: max(1, perListener), blobs: max(1, perListener)}
}

// busConnections returns the maximum number of connections to the embedded bus.
func busConnections(cfg *config.Config) int {
	return min(cfg.Limits.BusConnections, max(minBusConnections, planDescriptors(connlimit.FileLimit()).bus))
}

// connectionLimits returns the connection limits of the HTTP listener.
func connectionLimits(cfg *config.Config) connlimit.Options {
	limits := connlimit.Options{Limit: cfg.Limits.Connections, PerAddress: cfg.Limits.ConnectionsPerAddress}
	if limits.Limit == 0 {
		limits.Limit = planDescriptors(connlimit.FileLimit()).hub
		if cfg.HasOperatorListener() {
			limits.Limit = max(1, limits.Limit-operatorConnections().Limit)
		}
	}
	if limits.PerAddress == 0 {
		limits.PerAddress = max(1, limits.Limit/2)
	}
	return limits
}

// operatorConnections returns the connection limits of the operators' listener.
// It has no limit per address, because all health probes may come from one
// address.
func operatorConnections() connlimit.Options {
	return connlimit.Options{Limit: max(1, min(maxOperatorConnections, connlimit.FileLimit()/16))}
}

// waitingPeeks returns the maximum number of waiting Peeks on a listener with
// this limit of connections. A quarter of the connections is reserved for other
// requests, because the hub never closes a waiting Peek's connection to accept
// a new one.
func waitingPeeks(cfg *config.Config, connections int, logger *slog.Logger) int {
	limit := max(1, min(cfg.Limits.Waiting, connections*3/4))
	if limit < cfg.Limits.Waiting {
		logger.Warn("fewer Peeks may wait for data than limits.waiting allows, because they take at most three quarters of the HTTP connections; raise ulimit -n or limits.connections, or lower limits.waiting",
			"limits_waiting", cfg.Limits.Waiting, "connections", connections, "waiting", limit)
	}
	return limit
}

// registerConnections registers metrics that count the connections of l.
func registerConnections(registry prometheus.Registerer, l *connlimit.Limiter) {
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "messagehub_http_connections",
			Help: "HTTP connections that are open.",
		}, func() float64 { return float64(l.Stats().Open) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "messagehub_http_connections_closed_total",
			Help: "Idle HTTP connections that were closed to make room for others.",
		}, func() float64 { return float64(l.Stats().Closed) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "messagehub_http_connections_over_limit_total",
			Help: "HTTP connections over the limit, on which only probes are answered.",
		}, func() float64 { return float64(l.Stats().Over) }),
	)
}

// Package hubmetrics has the metrics that several edges of the hub share, and
// the registration that lets them share one. Metrics of a single edge are in
// the package of that edge.
//
// A counter whose labels have a fixed set of values has all series from the
// start, at 0: Prometheus cannot see the first increment of a series that
// begins with it.
package hubmetrics

// Package hubmetrics has the metrics that several edges of the hub share, and the registration with
// which they share a metric. The metrics of a single edge are in the package of that edge.
//
// A counter whose labels have a fixed set of values has all its series from the start, at 0.
// Prometheus would otherwise miss the first increment of each series.
package hubmetrics

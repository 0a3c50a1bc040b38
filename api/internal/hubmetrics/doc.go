// Package hubmetrics contains the metrics that several interfaces of the hub share, and functions
// to register them. The package of an interface contains the metrics that only this interface has.
//
// If the labels of a counter have a fixed set of values, all series of the counter exist from the
// start, at 0. Prometheus would otherwise miss the first increment of each series.
package hubmetrics

// Package hubmetrics has the metrics that several edges of the hub count together, and the
// registration that lets them share one. The edges call it; what each of them counts alone
// stays with it.
//
// A counter whose labels have a closed set of values has all of them from the start, at 0:
// Prometheus cannot see the first event of a series that begins with it.
package hubmetrics

// Package load puts a service under a load that does not depend on the service's speed, and
// measures how long each operation took from the caller's point of view.
//
// # Open and closed loops
//
// A closed loop has a fixed number of callers, each of which sends its next request when it has
// received the previous response. When the service stalls for a second, the callers stall too: the
// operations of that second are never made or counted, and a single slow response represents all
// of them. This is called coordinated omission, and it makes high percentiles wrong by orders of
// magnitude.
//
// Here the loop is open. A [Plan] determines from a seed when each operation is due, before the
// first one starts, because real senders and actors do not know about delays of the service or
// of each other. An operation starts when it is due, whatever the number of running operations,
// and its latency is counted from its due time, not from its start. So if the service or the
// generator falls behind, the latency of every delayed operation shows it, and no correction is
// needed.
//
// The only exception is an operation that depends on the result of another: a Dequeue is due
// when its Peek has ended. See [Outcome.Then].
//
// # What it promises
//
// Arrivals are the same for the same seed. Latencies are recorded in histograms from 1 µs to 10
// min with three digits; values outside are clamped. Run returns when the last operation has
// ended, and leaves no goroutine behind. It does not stop operations that never end: they must
// respect the context of Run.
//
// A [Result] contains evidence of its validity: how late operations started, and how many were
// waiting for their start. The generator shares the machine with the measured service; if the
// lateness is as large as the measured latencies, the machine was too small for the service and the
// generator.
//
// The package uses the clock of package time, so in a bubble of testing/synctest a plan of ten minutes
// takes no time, and latencies are exact.
package load

// Package load puts a service under a load that does not wait for it, and says how
// long each operation took its callers.
//
// # Open and closed loops
//
// A closed loop has a fixed number of callers, each of which asks again when it has its answer.
// When the service stops for a second, so do they: the operations that would have come in that
// second are never made and never counted, and one slow answer stands for all of them. That is
// called coordinated omission, and percentiles that are made so are wrong by orders of magnitude
// just where they matter.
//
// Here the loop is open. A [Plan] says when each operation is due, before the first is
// made and from a seed, as the world outside does: senders and actors know nothing of
// the service's troubles, nor of each other's. What is due is begun at once, however
// many are under way; and the time of an operation counts from when it was due, not
// from when it was begun or sent. So a service, or a generator, that falls behind says
// so in every operation that had to wait, and nothing has to be corrected afterwards.
//
// The one exception is what an actor does because of what it was given: a Dequeue is
// due the moment the Peek before it is done. See [Outcome.Then].
//
// # What it promises
//
// Arrivals are the same for the same seed. Latencies go into histograms from 1 µs to
// 10 min with three digits; what is outside counts as the nearest of the two. Run
// returns when the last operation has ended, and leaves no goroutine behind. An
// operation that never ends is its own business: it is given the context of Run.
//
// A [Result] says by itself whether it can be trusted: how late operations were begun,
// and how many were due and had not been begun. The generator shares the machine with
// what it measures; if it is late by as much as what it measures takes, the machine
// was too small for both.
//
// Time is that of package time, so in a bubble of testing/synctest a plan of ten
// minutes takes no time, and each latency is exact.
package load

// Package ledger compares the events that were sent with the bundles that were received.
//
// A [Ledger] trusts nothing that a hub reports about itself: an event counts as delivered
// when the body of a bundle had it and the Dequeue of that bundle was answered. It judges
// what every client of a hub can see:
//
//	H1  every accepted event is delivered, and no other
//	H2  an event is in one bundle, once
//	H3  sequence numbers ascend within a cabinet and are unique for a recipient; the events
//	    that a sender sends to a cabinet keep their order
//	H6  a bundle that is received again has the same body
//	H7  a bundle is not received again by a Peek that began after its Dequeue was answered
//
// The rules are named as in the design of the hub. The demo, the crash tests, the
// simulation, package crashsites and the conformance suite of stores share this judgement.
// Each reads the bodies itself, because each sends events of its own form, and adds the
// rules that only its own load can check: what operators may change, and what domains must
// be notified of.
//
// The order in which a hub has handed out the bundles of an actor is known if the calls of
// Receive follow it ([Options.InOrder]). Then Receive reports every violation at once. Where
// several clients of an actor report in any order, Check derives the order from the events
// and from the moments at which requests began and ended.
//
// The package imports the standard library alone, so that every test may use it.
package ledger

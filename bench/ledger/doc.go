// Package ledger compares the events that were sent with the bundles that were received.
//
// A [Ledger] does not trust what a hub reports about itself: an event counts as delivered
// when it was in the body of a bundle whose Dequeue was answered. It checks what every
// client of a hub can see:
//
//	H1  every accepted event is delivered, and no other
//	H2  an event is in one bundle, once
//	H3  sequence numbers ascend within a cabinet and are unique for a recipient; the events
//	    that a sender sends to a cabinet keep their order
//	H6  a bundle that is received again has the same body
//	H7  a bundle is not received again by a Peek that began after its Dequeue was answered
//
// The rules have the names of the hub's design. The demo, the crash tests, the simulation, package
// crashsites and the conformance suite of stores share these checks. Each of them parses the bodies
// itself, because the events have different forms, and adds rules for its own load, such as the
// effects of operators and the notices to domains.
//
// If Receive is called in the order in which the hub has delivered the bundles of an actor
// ([Options.InOrder]), it reports every violation immediately. If several clients of an actor
// report in any order, Check derives the order of the bundles from the events and from the
// moments at which requests began and ended.
//
// The package imports only the standard library, so that every test may use it.
package ledger

// Package market puts a whole hub under the load that a market makes: domains announce
// events, and every recipient peeks by its own clock and dequeues what it got.
//
// The hub is a node as it ships, in this process, reached by HTTP on a loopback port.
// Its documents are in an account of package account; what they cost is counted by
// container. The load is open, see package load: no operation waits for another, but
// those that an actor does one after the other.
//
//	domains ──POST──▶ ┌─────┐ ──▶ catalog
//	                  │ hub │ ──▶ cabinet   on an account with physics
//	actors ──GET────▶ └─────┘ ──▶ bundles
//	       ──DELETE─▶
//
// A [Market] says who takes part and for how long; Hold runs it, then fetches what is left, and
// returns a [Day]: how long operations took, what the account gave, and whether each group has
// everything that it was sent, once. Hub, clients and engine share the machine, so the clients are
// cheap: they count events and look at nothing.
package market

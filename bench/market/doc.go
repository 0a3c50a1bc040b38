// Package market puts a complete hub under the load of an energy market: domains announce events,
// and every recipient peeks periodically and dequeues its bundles.
//
// The hub is a node as it ships, in this process, with HTTP on a loopback port. Its documents are
// in an account of package account, and request units are counted by container. The load is open,
// see package load: operations do not wait for each other, except operations of the same actor.
//
//	domains ──POST──▶ ┌─────┐ ──▶ catalog
//	                  │ hub │ ──▶ cabinet   on an account with physics
//	actors ──GET────▶ └─────┘ ──▶ bundles
//	       ──DELETE─▶
//
// A [Market] defines the participants and the duration. Hold runs it, fetches the remaining
// events, and returns a [Day]: the latencies, the use of the account, and whether each group has
// received each of its events once. Hub, clients and engine share the machine, so the clients only
// count events and do not inspect them.
package market

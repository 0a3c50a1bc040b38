// Package failsafe is the worker of the broker's fail-safe. It re-triggers jobs
// that a dead node has left, where nodes do not take over by themselves.
//
// A [Worker] works in rounds: it asks a [Hub] which jobs are overdue, and then
// for a re-trigger of each. A hub lists no job with which a node is calling, or
// that is in a bundle. It lists one job of each shard of consumers, because the
// node that gets the re-trigger takes over the whole shard. So a round is one
// request if no node has died, and never more than a fixed number of requests.
// A round that has not reached the end of the list is continued by the next
// one.
//
// A job that was re-triggered is not re-triggered again for a while: the node
// needs up to 10 seconds to notice that the other one has died, and other nodes
// learn later that it has taken over. After failures, the pauses between rounds
// grow, up to a minute or to what the hub asks for.
//
// Any number of workers may run, and any of them may end at any time: they
// store nothing, and a repeated re-trigger changes nothing.
//
// [Client] is a Hub that is reached with a client of the broker, for example at
// the address of a load balancer.
package failsafe

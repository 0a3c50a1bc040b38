// Package failsafe is the worker of the broker's fail-safe. It has jobs re-triggered that a dead node
// has left, where nodes do not take over by themselves.
//
// A [Worker] asks a [Hub] in rounds: which jobs are overdue, and then for a re-trigger of each. A hub
// lists no job that a node calls with, or that a bundle holds. It lists one job of each shard of
// consumers, because the node that gets the re-trigger takes over the whole shard. So a round is one
// request if no node has died, and never more than a fixed number of requests. The next round
// continues one that has not reached the end of the list.
//
// A job that was re-triggered is not re-triggered again for a while: the node that was asked needs up
// to 10 seconds to know that the other one has died, and other nodes learn later that it has taken
// over. After failures, the rounds are further apart, up to a minute, or as far as the hub asks for.
//
// Any number of workers may run, and any of them may end at any time: they keep nothing, and a
// re-trigger that is repeated changes nothing.
//
// [Client] is the Hub that a client of the broker reaches, such as by the address of a load balancer.
package failsafe

// Package failsafe is the worker of the broker's fail-safe. It re-triggers the jobs of a dead node,
// in deployments where nodes do not take over automatically.
//
// A [Worker] works in rounds: it requests the overdue jobs from a [Hub], and then re-triggers each
// of them. A hub does not list a job while a node calls its consumer, or while the job is in a
// bundle. It lists only one job of each shard of consumers, because the node that receives the
// re-trigger takes over the whole shard. If no node has died, a round is one request. The number of
// requests of a round is limited. If a round does not reach the end of the list, the next round
// continues there.
//
// For a while after a re-trigger, the same job is not re-triggered again: a node needs up to 10
// seconds to notice that another node has died, and further nodes learn later which node has taken
// over. After failures, the pauses between rounds grow up to a minute, or to the pause that the hub
// requests.
//
// Several workers may run, and each of them may stop at any time: workers store nothing, and a
// repeated re-trigger changes nothing.
//
// [Client] implements Hub with a client of the broker's API, for example at the address of a load
// balancer.
package failsafe

// Package failsafe is the worker of the broker's fail-safe. It re-triggers the jobs of a dead node, in
// deployments where other nodes do not take over automatically.
//
// A [Worker] works in rounds: it requests the overdue jobs from a [Hub], and then a re-trigger of
// each job. A hub does not list a job while a node calls its consumer, or while the job is in a
// bundle. It lists one job of each shard of consumers, because the node that receives the
// re-trigger takes over the whole shard. So a round is one request if no node has died, and never
// more than a fixed number of requests. If a round does not reach the end of the list, the next
// round continues there.
//
// For a while after a re-trigger, the job is not re-triggered again: the node needs up to 10 seconds
// to notice that the other node has died, and further nodes learn later which node has taken over.
// After failures, the pauses between rounds grow up to a minute, or to the pause that the hub requests.
//
// Any number of workers may run, and any of them may stop at any time: workers store nothing, and a
// repeated re-trigger changes nothing.
//
// [Client] is a Hub behind a client of the broker's API, for example at the address of a load balancer.
package failsafe

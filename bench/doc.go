// Package bench measures whether the hub meets its targets: a Peek within 30 s, a Dequeue within
// 0.5 s, for a bundle of 51,200 events and 50 MB, on partitions with 10,000 request units per
// second.
//
// It consists of scenarios. Each scenario has its own account, executes the same operations with
// the same events on several layouts in one run, and reports figures, some of which have a target.
// The layouts are
//
//	hub       ours, package cosmos
//	limit     the requests of its protocol without its code, by bare azcosmos calls
//	original  drawers with a document for each event, as the hub's predecessor stored them
//	single    a document for each event in one partition: the first design of all
//
// The command messagehub measures the first two. The program bench/compare measures
// the layouts of package baseline beside them, and draws plots.
//
// Package account models the account, unless the options name an existing account. Times depend on
// this machine and on the model; requests and request units depend on neither. So where possible, a
// target for times is a ratio of two figures of one run.
//
// A scenario that cannot be completed returns an error. A missed target is not an error: its figure
// records the miss, and the command that runs the bench exits with 1.
package bench

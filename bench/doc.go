// Package bench measures the hub against what it was asked for: a Peek within 30 s,
// a Dequeue within 0.5 s, of 51,200 events and 50 MB, on partitions that give 10,000
// request units a second.
//
// It is made of scenarios. Each builds what it needs on an account of its own, does
// the same with several layouts side by side, in one run and with the same events,
// and reports figures, some of which have a target. The layouts are
//
//	hub       ours, package cosmos
//	limit     the requests of its protocol without its code, by bare azcosmos calls
//	original  drawers with a document for each event, as the hub before this one
//	single    a document for each event in one partition: what the seed says failed
//
// The command messagehub measures the first two. The program bench/compare measures
// the layouts of package baseline beside them, and draws plots.
//
// The account is modelled, in package account, unless another one is named. Times are
// those of this machine and the model together; request units and requests depend on
// neither. So a claim about time is a ratio of two figures of one run where it can be.
//
// A scenario that cannot be carried out is an error. A target that is missed is not: it is a figure
// that says so, and the command that runs the bench exits with 1.
package bench

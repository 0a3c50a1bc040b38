// Package repositorytest tests implementations of the ports of package repository by their contracts.
// The name of each case is the rule that it tests. A W and a number in a name refer to the weak point
// of an earlier message hub that the rule excludes.
//
//	func TestConformance(t *testing.T) {
//		repositorytest.Run(t, open)    // rule by rule
//		repositorytest.Random(t, memory, open) // random operations, compared with an oracle
//	}
//
// open returns stores that are connected: the payloads of Events must be found in Content. [RunOnly]
// tests a store that fulfills only some of the rules, [RunContent] tests only a content store, and
// [Benchmark] measures the operations that cost time and money.
//
// [RunPush] tests the ports of the push side, and [RunObjects] tests the port of objects.
//
// Each case has its own recipients, so open may return the same stores again if they have the requested
// drawer capacity, and the stores need not be empty. They know the default groups.
//
// The suite does not break connections or kill processes. An implementation has separate tests of the
// state after such a failure. This package has tools for these tests: events to send ([Events]), an
// actor that fetches the events ([Drain]), and a check that no event was lost, duplicated or reordered
// ([Ledger]).
package repositorytest

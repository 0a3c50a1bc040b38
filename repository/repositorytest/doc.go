// Package repositorytest holds every implementation of the ports of package
// repository to their contracts. The name of each case is the rule that it
// tests; a W and a number in it name the weak point of an earlier message hub
// that the rule rules out.
//
//	func TestConformance(t *testing.T) {
//		repositorytest.Run(t, open)    // rule by rule
//		repositorytest.Random(t, memory, open) // random operations, compared with an oracle
//	}
//
// where open gives back stores that are wired to each other: the payloads of
// Events must be found in Content. [RunOnly] holds a store that does not promise all of
// it to what it claims, [RunContent] tests a content store alone, and [Benchmark] measures
// what costs time and money.
//
// [RunPush] holds the ports of the push side to their contracts, and [RunObjects] that of objects.
//
// Each case works with recipients of its own, so open may hand out the same
// stores again as long as they have the drawer capacity that is asked for, and
// the stores need not be empty. They know the default groups.
//
// The suite does not break connections or kill processes: what a failure leaves
// behind is for the tests of an implementation, which find here what they need
// for it: events to send ([Events]), an actor that fetches them ([Drain]) and the
// proof that nothing was lost, doubled or reordered ([Ledger]).
package repositorytest

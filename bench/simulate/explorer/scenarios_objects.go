package explorer

import "github.com/messagehub/messagehub/repository"

// ingester returns a party that delivers messages.
func ingester(name string, messages ...[]repository.ObjectReport) Party {
	p := partyOf(name, ingestAll(messages...))
	p.Messages = messages
	return p
}

// objectScenarios returns the scenarios in which nodes store events of one or two objects.
func objectScenarios() []*Scenario {
	spilled := prepareWith(ingestAll(reportsOf("key", "[C@20+20] [D@30+30] [C@40+40] [C@50+50]"))) // 20 and 30 are spilled
	two := func(script string) []repository.ObjectReport {
		return append(reportsOf("key", script), reportsOf("other", script)...)
	}
	return []*Scenario{
		{
			Name: "object-new", Quick: true, Text: "two nodes store an event of a bucket that is new; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1,
			Parties: []Party{ingester("created", reportsOf("key", "[C@10]")), ingester("deleted", reportsOf("key", "[D@20]"))},
		},
		{
			Name: "object-same", Quick: true, Text: "two nodes are delivered the same events of a known object; a crash, two lost replies",
			Objects: true, Crashes: 1, Lost: 2, Prepare: prepareWith(ingestAll(reportsOf("key", "[C@10]"))),
			Parties: []Party{ingester("a", reportsOf("key", "[C@10, D@20]")), ingester("b", reportsOf("key", "[C@10, D@20]"))},
		},
		{
			Name: "object-duplicate-spilled", Quick: true, Text: "two nodes are delivered an event that is spilled; a crash, two lost replies",
			Objects: true, Crashes: 1, Lost: 2, Prepare: spilled,
			Parties: []Party{ingester("a", reportsOf("key", "[C@20]")), ingester("b", reportsOf("key", "[C@20]"))},
		},
		{
			Name: "object-late-spill", Quick: true, Text: "an event below the floor arrives while others spill rows; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: spilled,
			Parties: []Party{ingester("late", reportsOf("key", "[C@25/v+25]")), ingester("spills", reportsOf("key", "[D@60+60]"))},
		},
		{
			Name: "object-late-uncover", Quick: true, Text: "a version is uncovered while an event below the floor deletes it; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1,
			Prepare: prepareWith(ingestAll(reportsOf("key", "[C@10/1] [C@20/2] [D@30/2] [C@40/3]"))), // version 1 is spilled
			Parties: []Party{ingester("uncovers", reportsOf("key", "[D@50/3]")), ingester("late", reportsOf("key", "[D@15/1]"))},
		},
		{
			Name: "object-late-uncover-stale", Text: "the same on a Session account, two stale reads",
			Objects: true, Session: true, Stale: 2, Behind: 2,
			Prepare: prepareWith(ingestAll(reportsOf("key", "[C@10/1] [C@20/2] [D@30/2] [C@40/3]"))),
			Parties: []Party{ingester("uncovers", reportsOf("key", "[D@50/3]")), ingester("late", reportsOf("key", "[D@15/1]"))},
		},
		{
			Name: "object-null-moves", Quick: true, Text: "an event without sequencer is stored while an earlier one arrives late; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: spilled,
			Parties: []Party{ingester("null", reportsOf("key", "[D@-+28]")), ingester("late", reportsOf("key", "[C@25+25]"))},
		},
		{
			Name: "object-two-names", Quick: true, Text: "two nodes store events of two objects in one batch; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: prepareWith(ingestAll(two("[C@10]"))),
			Parties: []Party{ingester("a", two("[C@10, D@20]")), ingester("b", two("[C@10, D@20]"))},
		},
		{
			Name: "object-two-names-stale", Quick: true, Text: "the same on a Session account, two stale reads",
			Objects: true, Session: true, Stale: 2, Behind: 2, Prepare: prepareWith(ingestAll(two("[C@10]"))),
			Parties: []Party{ingester("a", two("[C@10, D@20]")), ingester("b", two("[C@10, D@20]"))},
		},
		{
			Name: "object-three", Quick: true, Text: "three nodes store events of one object, one of them below the floor; a crash, a lost reply",
			Objects: true, Crashes: 1, Lost: 1, Prepare: spilled,
			Parties: []Party{
				ingester("late", reportsOf("key", "[C@25/v+25]")), ingester("null", reportsOf("key", "[D@-+28]")), ingester("spills", reportsOf("key", "[D@60+60]")),
			},
		},
	}
}

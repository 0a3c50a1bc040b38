package smallsaves

// A Group is the list of scenarios of one variant of the protocol.
type Group struct {
	Title     string
	Scenarios []Scenario
}

// Groups returns all scenarios. The exploration of each scenario must be complete and find no
// violation.
func Groups() []Group {
	return []Group{
		{"without tails", withoutTails},
		{"small Saves", smallSaves},
		{"retention", retention},
		{"the count written only when a drawer is left", counting},
		{"entries written by each flush that owes one, and all believed", entries},
	}
}

type (
	both   = [processes]string
	writes = both
	reads  = both
)

var withoutTails = []Scenario{
	{Name: "two-savers-crash-lost-reply", Writers: writes{"1/25", "2"}, Fresh: true, Crashes: 1, LostReplies: 1},
	{Name: "two-savers-stale-crash-lost", Writers: writes{"12", "2"}, Lenient: true, StaleReads: 2, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "merged-commit-reserve-crash", Writers: writes{"1/25/3", "5"}, Fresh: true, MergeCommits: true, Crashes: 1, LostReplies: 1},
	{Name: "save-two-dequeuers-crash", Setup: "S1/A1", Writers: writes{"25", ""}, Actors: reads{"21", "2"}, Fresh: true, Crashes: 1, LostReplies: 1},
	{Name: "save-peek-stale-crash-cap1", Setup: "S3/A1", Writers: writes{"12/5", ""}, Actors: reads{"211", ""}, Capacity: 1, Lenient: true, Choice: true, StaleReads: 2, Versions: 2, Crashes: 1, Rollbacks: 1},
	{Name: "two-savers-one-peeker", Setup: "S1/A1", Writers: writes{"2", "5"}, Actors: reads{"1", ""}, Lenient: true, Choice: true, StaleReads: 2, Versions: 2, Crashes: 1, Rollbacks: 1},
	{Name: "two-actors-stale-crash-lost", Setup: "S125", Actors: reads{"1212", "121"}, Lenient: true, Choice: true, StaleReads: 2, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "half-dequeued-helpers-save", Setup: "S123/A1", Writers: writes{"4", ""}, Actors: reads{"21", "121"}, Capacity: 3, Bundle: 1, Fresh: true, Crashes: 1},
	{Name: "two-domains-stale", Writers: writes{"1/5/2", ""}, Actors: reads{"121", ""}, TwoDomains: true, Lenient: true, Choice: true, StaleReads: 2, Versions: 2, NoRollbacks: true},
}

var smallSaves = []Scenario{
	{Name: "savers-cap1", Tail: 1, Capacity: 1, Writers: writes{"1/2/5", "3/2"}, Fresh: true, EagerFlushes: 1, Crashes: 1, LostReplies: 1},
	{Name: "savers-cap2", Tail: 2, Writers: writes{"1/2/3/5", "4/2"}, Fresh: true, EagerFlushes: 1, Crashes: 1, LostReplies: 1},
	{Name: "savers-cap3-two-flushes", Tail: 2, Capacity: 3, Writers: writes{"1/2/3/4", "5/6/3"}, Fresh: true, EagerFlushes: 2, Crashes: 1, LostReplies: 1},
	{Name: "small-and-large-two-crashes", Tail: 1, Writers: writes{"1/L25/3", "4/2"}, Fresh: true, EagerFlushes: 1, Crashes: 2, LostReplies: 1},
	{Name: "small-and-large-cap3", Tail: 2, Capacity: 3, Writers: writes{"1/L23/5", "L4/6/2"}, Fresh: true, EagerFlushes: 1, Crashes: 1, LostReplies: 1},
	{Name: "merged-with-the-commit", Tail: 2, Writers: writes{"L12/3/L4", "5"}, Fresh: true, MergeCommits: true, Crashes: 1, LostReplies: 1},
	{Name: "flushers", Tail: 2, Capacity: 3, Writers: writes{"1/2/3/4", "F/F/F"}, Fresh: true, EagerFlushes: 1, Crashes: 2, LostReplies: 2},
	{Name: "flush-under-an-intent", Tail: 2, Capacity: 3, Writers: writes{"1/L2/3", "5/F/F"}, Fresh: true, EagerFlushes: 1, Crashes: 1, LostReplies: 1},
	{Name: "payloads", Tail: 2, Payloads: true, Writers: writes{"1/2/5", "3/1"}, Fresh: true, EagerFlushes: 1, Crashes: 1, LostReplies: 2},
	{Name: "index-stale", Tail: 2, Writers: writes{"1/2/1", "2/3"}, Lenient: true, EagerFlushes: 1, StaleReads: 3, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "index-stale-small-and-large", Tail: 1, Writers: writes{"1/L2/3", "2/5"}, Lenient: true, EagerFlushes: 1, StaleReads: 2, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "peek-stale", Setup: "S1/A12", Tail: 2, Writers: writes{"2/3", ""}, Actors: reads{"1212", ""}, Lenient: true, Choice: true, StaleReads: 2, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "peek-flush-stale", Tail: 2, Writers: writes{"1/2/5/3", "F"}, Actors: reads{"121", ""}, Lenient: true, Choice: true, StaleReads: 2, Versions: 2},
	{Name: "peek-flush-stale-crash-lost", Tail: 1, Writers: writes{"1/2/5", "F"}, Actors: reads{"121", ""}, Lenient: true, Choice: true, StaleReads: 1, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "peek-again-while-it-is-flushed", Setup: "S1", Tail: 2, Capacity: 3, Writers: writes{"2/3", "F"}, Actors: reads{"112", "12"}, Lenient: true, Choice: true, StaleReads: 1, Versions: 2},
	{Name: "bundle-of-pages-and-tail", Setup: "S1/SF/S2", Tail: 2, Capacity: 3, Writers: writes{"3/L4", ""}, Actors: reads{"112", "12"}, Lenient: true, Choice: true, StaleReads: 1, Versions: 2, Crashes: 1},
	{Name: "two-domains", Tail: 1, Writers: writes{"1/5/2", "F"}, Actors: reads{"121", ""}, TwoDomains: true, Lenient: true, Choice: true, StaleReads: 2, Versions: 2},
	{Name: "order-of-the-recipient", Tail: 2, InOrder: true, Writers: writes{"1/5/L2/6", "F"}, Actors: reads{"1212", ""}, Lenient: true, Choice: true, StaleReads: 1, Versions: 2, Crashes: 1},
}

var retention = []Scenario{
	{Name: "sweep-and-save", Setup: "S1/A12", Tail: 2, Writers: writes{"5/2", "X/X"}, Actors: reads{"112", ""}, Lenient: true, StaleReads: 1, Crashes: 1, LostReplies: 1},
	{Name: "sweep-pages-and-flush", Setup: "S1/SF/A12", Tail: 2, Writers: writes{"2/F", "X/3"}, Actors: reads{"112", ""}, Lenient: true, StaleReads: 1, Crashes: 1},
	{Name: "sweep-and-zombie-flush", Setup: "S1/A12", Tail: 2, Writers: writes{"F/2", "X/3"}, Actors: reads{"12", ""}, Fresh: true, Crashes: 1, LostReplies: 1},
	{Name: "sweep-leaves-nothing", Setup: "S1/A12", Tail: 2, Writers: writes{"F", "X/X"}, Fresh: true, Crashes: 1, Leaks: true, NoLateFlush: true},
}

var counting = []Scenario{
	{Name: "count-savers-cap1", CountWhenLeft: true, Tail: 1, Capacity: 1, Writers: writes{"1/2/5", "3/2"}, Fresh: true, EagerFlushes: 1, Crashes: 1, LostReplies: 1},
	{Name: "count-savers-cap3-two-flushes", CountWhenLeft: true, Tail: 2, Capacity: 3, Writers: writes{"1/2/3/4", "5/6/3"}, Fresh: true, EagerFlushes: 2, Crashes: 1, LostReplies: 1},
	{Name: "count-small-and-large-two-crashes", CountWhenLeft: true, Tail: 1, Writers: writes{"1/L25/3", "4/2"}, Fresh: true, EagerFlushes: 1, Crashes: 2, LostReplies: 1},
	{Name: "count-small-and-large-cap3", CountWhenLeft: true, Tail: 2, Capacity: 3, Writers: writes{"1/L23/5", "L4/6"}, Fresh: true, EagerFlushes: 1, Crashes: 1},
	{Name: "count-merged-with-the-commit", CountWhenLeft: true, Tail: 2, Writers: writes{"L12/3/L4", "5"}, Fresh: true, MergeCommits: true, Crashes: 1, LostReplies: 1},
	{Name: "count-index-stale-small-and-large", CountWhenLeft: true, Tail: 1, Writers: writes{"1/L2/3", "2/5"}, Lenient: true, EagerFlushes: 1, StaleReads: 2, Versions: 2, Crashes: 1, LostReplies: 1},
	{Name: "count-peek-flush-stale", CountWhenLeft: true, Tail: 2, Writers: writes{"1/2/5/3", "F"}, Actors: reads{"121", ""}, Lenient: true, Choice: true, StaleReads: 2, Versions: 2},
	{Name: "count-peek-again-while-it-is-flushed", CountWhenLeft: true, Setup: "S1", Tail: 2, Capacity: 3, Writers: writes{"2/3", "F"}, Actors: reads{"112", "12"}, Lenient: true, Choice: true, StaleReads: 1, Versions: 2},
	{Name: "count-bundle-of-pages-and-tail", CountWhenLeft: true, Setup: "S1/SF/S2", Tail: 2, Capacity: 3, Writers: writes{"3/L4", ""}, Actors: reads{"112", "12"}, Lenient: true, Choice: true, StaleReads: 1, Versions: 2},
}

var entries = []Scenario{
	{Name: "entries-small-and-large-cap3", FlushEntries: true, AnyEntry: true, Tail: 2, Capacity: 3, Writers: writes{"1/L23/5", "L4/6"}, Fresh: true, Crashes: 1},
	{Name: "entries-peek-flush-stale", FlushEntries: true, AnyEntry: true, Tail: 2, Writers: writes{"1/2/5", "F"}, Actors: reads{"121", ""}, Lenient: true, Choice: true, StaleReads: 2, Versions: 2},
}

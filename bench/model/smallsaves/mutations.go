package smallsaves

// Mutations returns scenarios, each without one rule of the protocol. The exploration of each
// scenario must find a violation.
func Mutations() []Scenario {
	return []Scenario{
		{Name: "without-claim", without: claimFirst, Writers: writes{"1", "5"}},
		{Name: "without-sealed-only", without: trustSealedOnly, Setup: "S1", Writers: writes{"12", "5"}, Actors: reads{"1", ""}, Lenient: true, StaleReads: 1, Rollbacks: 1},
		{Name: "without-gate-place", without: keepPlace | chooseCandidates | dequeueAtOnce | confirmOpen, AnyEntry: true, Setup: "S12", Actors: reads{"1212", ""}, Bundle: 1, Fresh: true, Lenient: true, StaleReads: 1},
		{Name: "without-ordinals", without: denseOrdinals | chooseCandidates | dequeueAtOnce | confirmOpen, AnyEntry: true, Setup: "S12", Writers: writes{"34", "3"}, Capacity: 1, Fresh: true, Lenient: true, StaleReads: 1, NoRollbacks: true},
		{Name: "without-confirm", without: confirmOpen, Setup: "S1/A1", Actors: reads{"2", "1"}, Lenient: true, StaleReads: 1},
		{Name: "watermark-as-proof", without: idsDecide, Writers: writes{"1", "5"}},
		{Name: "entry-only-of-a-new-drawer", without: entryOfEachFlush, FlushEntries: true, AnyEntry: true, Setup: "S1/SF/A12", Tail: 1, Writers: writes{"2/5/L3", ""}, Fresh: true},
		{Name: "no-entry-and-any-believed", AnyEntry: true, Tail: 2, Capacity: 3, Writers: writes{"1/L23/5", "L4"}, Fresh: true},
		{Name: "sweep-forgets-the-drawer", without: noteClosedDrawer, NoLateFlush: true, Setup: "S1/A12", Tail: 2, Writers: writes{"F", "X/X"}, Fresh: true, Crashes: 1, Leaks: true},
		{Name: "sweep-without-if-match", without: sweepIfMatch, Setup: "S1/A12", Tail: 2, Writers: writes{"5/2", "X"}, Actors: reads{"12", ""}, Fresh: true},
		{Name: "payloads-dropped-on-refusal", without: keepPayloads, Payloads: true, Tail: 2, Writers: writes{"1", "2"}, Fresh: true, LostReplies: 1},
		{Name: "old-node", without: knowTails, Tail: 2, Writers: writes{"1", "L2"}, Fresh: true},
		{Name: "flush-without-adopting-a-page", without: adoptPage, Tail: 2, Writers: writes{"1/2/3", "F"}, Fresh: true},
		{Name: "flush-replaces-a-page", without: createPage, Tail: 2, Writers: writes{"1/2/3", "F"}, Fresh: true},
		{Name: "flush-counts-without-condition", without: countCondition, Tail: 1, Capacity: 3, Writers: writes{"1/2/3", "F"}, Fresh: true},
		{Name: "flush-counts-before-the-page", without: pageBeforeCount, Tail: 2, Writers: writes{"1/2/3", "F"}, Fresh: true},
		{Name: "flush-without-a-drawer", without: countFlushed, Tail: 1, Capacity: 1, Writers: writes{"1/2", ""}, Fresh: true},
		{Name: "flushed-without-if-match", without: flushedIfMatch, Tail: 2, Writers: writes{"1/2", "F"}, Fresh: true},
		{Name: "small-without-if-match", without: smallIfMatch, Tail: 2, Writers: writes{"1", "2"}, Fresh: true},
		{Name: "small-under-an-intent", without: smallWithoutIntent, Tail: 1, Writers: writes{"L12", "3"}, Fresh: true},
		{Name: "small-watermark-as-proof", without: idsDecide, Tail: 2, Writers: writes{"1", "2"}, Fresh: true},
		{Name: "new-drawer-with-a-tail-left", without: flushBeforeNewDrawer, Tail: 1, Capacity: 1, Writers: writes{"1/2", ""}, Fresh: true},
		{Name: "large-with-a-tail-left", without: flushBeforeLarge, Tail: 2, Capacity: 3, Writers: writes{"1/L2", ""}, Fresh: true},
		{Name: "index-without-the-tail", without: indexTail, Tail: 2, Writers: writes{"1", "1"}, Fresh: true},
		{Name: "reader-trusts-the-count", without: fillFromHead, Setup: "S1", Tail: 1, Writers: writes{"L2", ""}, Actors: reads{"1", ""}, Lenient: true},
		{Name: "reader-knows-only-pages", without: readTail, Setup: "S1", Tail: 2, Actors: reads{"1", ""}, Lenient: true},
		{Name: "reader-knows-only-documents", without: readHeadDrawer, Tail: 1, Capacity: 1, Writers: writes{"1/2", ""}, Fresh: true},
		{Name: "choice-by-the-tail-alone", without: pagesBeforeTail, Tail: 1, Writers: writes{"1/5/2", ""}, Actors: reads{"1", ""}, Lenient: true, Choice: true},
		{Name: "repeat-from-an-old-head", without: rejectOldHead, Setup: "S1", Tail: 2, Writers: writes{"2", ""}, Actors: reads{"11", ""}, Lenient: true, StaleReads: 2, Versions: 2},
		{Name: "order-not-kept", without: keepOrder, InOrder: true, Tail: 2, Writers: writes{"1/5/2/6", ""}, Fresh: true},
		{Name: "lazy-drawer-not-left", without: sealLeft, CountWhenLeft: true, Tail: 1, Capacity: 1, Writers: writes{"1/2", ""}, Fresh: true},
	}
}

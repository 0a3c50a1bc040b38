package objecttest

// A Table is a test case of the filemanager: events, and the resulting rows.
type Table struct {
	Name   string // number of the table, and its subject
	Script string // argument of Calls
	Want   string // result of Describe or DescribePairs
}

// NativeTables have no null sequencers, so the resulting rows do not depend on the order of
// arrival.
var NativeTables = []Table{
	{"FM-1 sorted and deduplicated", "[D@D1, C@C1, C@C1]", "C@C1· D@D1·"},
	{"FM-1 another version", "[D@D1, C@C1, C@C1, D@D1/other]", "C@C1· D@D1· D@D1/other·"},
	{"FM-2 full list", "[D@D1, C@C1, C@C1, C@C2, D@D2, D@D2]", "C@C1· D@D1· C@C2· D@D2·"},
	{"FM-10 created", "[C@C1/V]", "C@C1/V+"},
	{"FM-11 removed", "[D@D1/V, C@C1/V, C@C1/V]", "C@C1/V· D@D1/V·"},
	{"FM-12 duplicates", "[D@D1/V, C@C1/V, C@C1/V] [D@D1/V, C@C1/V, C@C1/V]", "C@C1/V·1 D@D1/V·1"},
	{"FM-12 duplicates of the null version", "[D@D1, C@C1, C@C1] [D@D1, C@C1, C@C1]", "C@C1·1 D@D1·1"},
	{"FM-13 delete marker", "[M@C1/V, D@D1/V]", "M@C1/V· D@D1/V·"},
	{"FM-14 same sequencers, other types", "[C@C1/V, C@D1/V, D@C2/V]", "C@C1/V· C@D1/V· D@C2/V·"},
	{"FM-14 one version created and deleted at one sequencer", "[D@C1/V] [C@C1/V]", "C@C1/V· D@C1/V·"},
	{"FM-15", "[D@D1/V, C@C2/V, D@D2/V]", "D@D1/V· C@C2/V· D@D2/V·"},
	{"FM-16 late created", "[D@D1/V] [C@C1/V]", "C@C1/V· D@D1/V·"},
	{"FM-17 another version is newer", "[D@D1/V, C@C1/V, C@C1/V] [C@C2/version_id, C@C1/V, D@D1/V]", "C@C1/V·1 D@D1/V·1 C@C2/version_id+"},
	{"FM-18 missing deleted", "[C@D1/V] [C@C2/V]", "C@D1/V· C@C2/V+"},
	{"FM-19 missing created", "[D@D1/V] [D@D2/V]", "D@D1/V· D@D2/V·"},
	{"FM-20", "[C@Z/V] [C@C1/V] [D@D1/V]", "C@Z/V· C@C1/V· D@D1/V·"},
	{"FM-21", "[D@C2/V] [D@D1/V] [C@C1/V]", "C@C1/V· D@D1/V· D@C2/V·"},
	{"FM-22 late older pair", "[C@C2/V] [C@C1/V, D@D1/V]", "C@C1/V· D@D1/V· C@C2/V+"},
	{"FM-23 late older version", "[C@C2/2] [C@C1/1]", "C@C1/1· C@C2/2+"},
	{"FM-24 no version", "[D@D1] [C@C2]", "D@D1· C@C2+"},
	{"FM-25 permutations", "[C@1/V] [D@2/V] [D@3/V] [C@4/V] [C@5/V]", "C@1/V· D@2/V· D@3/V· C@4/V· C@5/V+"},
	{"FM-25 permutations, key1", "[C@1/V]", "C@1/V+"},
	{"FM-26 permutations", "[C@1/v] [D@2/v] [C@3/v] [D@4/v] [D@1/v1]", "C@1/v· D@1/v1· D@2/v· C@3/v· D@4/v·"},
}

// NullTables have null sequencers, so tests must not change the order of the events: FM-31 and FM-34
// have the same events and different results.
var NullTables = []Table{
	{"FM-5", "[D@-, C@-, C@-]", "C@0-01· C@0-02· D@0-03·"},
	{"FM-31", "[C@C1, C@-, D@-]", "C@C1· C@C1-01· D@C1-02·"},
	{"FM-31 in another order", "[D@-, C@-, C@C1]", "C@C1· C@C1-01· D@C1-02·"},
	{"FM-31 split", "[C@C1] [C@-, D@-]", "C@C1· C@C1-01· D@C1-02·"},
	{"FM-31 with no times", "[C@C1!] [C@-!, D@-!]", "C@C1· C@C1-01· D@C1-02·"},
	{"FM-32", "[C@C1] [C@-]", "C@C1· C@C1-01+"},
	{"FM-34 on nothing", "[C@-, D@-]", "C@0-01· D@0-02·"},
	{"FM-34", "[C@-, D@-] [C@C1]", "C@0-01· D@0-02· C@C1+"},
	{"FM-34 with no times", "[C@-!, D@-!] [C@C1]", "C@0-01· D@0-02· C@C1+"},
	{"FM-70 inventory", "[L@-]", "C@0-01+"},
	{"FM-70 inventory with no time", "[L@-!]", "C@0-01+"},
	{"FM-72 inventory, then natives, on key1", "[L@-!] [D@D1] [C@C1]", "C@0-01· C@C1· D@D1·"},
	{"FM-72 inventory with the time of its manifest", "[L@-+1] [D@D1+9] [C@C1+8]", "C@0-01· C@C1· D@D1·"},
	{"FM-73", "[L@-!] [D@D1] [C@C2]", "C@0-01· D@D1· C@C2+"},
	// The following tables are not from the filemanager. In these tables, the times of the events
	// determine the rows, in any order of arrival.
	{"a late lifecycle event does not hide what happened since", "[C@C1+1] [C@C2+5] [D@-+3]", "C@C1· D@C1-01· C@C2+"},
	{"a late native event moves what happened after it", "[C@-+3] [C@C1+1]", "C@C1· C@C1-01+"},
	{"and what happened before it stays", "[D@-+1] [C@C1+3]", "D@0-01· C@C1+"},
	{"and what happened before it stays, if its sequencer is zero", "[D@-+1] [C@00+3]", "D@0-01· C@00+"},
	{"a null sequencer is placed behind its own version", "[C@C1/1+1] [C@C2/2+2] [C@-/1+3]", "C@C1/1· C@C1-01/1· C@C2/2+"},
	{
		"a row that moves above the floor uncovers the one below it",
		"[C@1+1] [C@2+2] [C@21+3] [C@-+50] [C@3+61] [C@4+62] [C@5+63] [C@6+64] [C@7+65] [C@22+40]",
		"C@1· C@2· C@21· C@22· C@22-01· C@3· C@4· C@5· C@6· C@7+",
	},
	{"a marker of a lifecycle rule is on top", "[C@C1/1+1] [C@C2/2+2] [M@-/3+3] [C@-/2+4]", "C@C1/1· C@C2/2· C@C2-02/2· M@C2-01/3·"},
	{"what follows for such a marker is behind it", "[C@C1/1+1] [D@-/3+5] [M@-/3+3]", "C@C1/1+ M@C1-02/3· D@C1-01/3·"},
	{"a version that only a listing has is on top", "[C@C1/1+1] [C@C2/2+2] [L@-/3+3]", "C@C1/1· C@C2/2· C@C2-01/3+"},
	{"its own native event comes late", "[C@C1/1+1] [L@-/3+3] [C@C2/3+2]", "C@C1/1· C@C2/3· C@C2-01/3+"},
	{"a listing is later than what happened before it", "[C@C1/1+1] [L@-/1+3] [C@C2/2+2]", "C@C1/1· C@C2/2· C@C2-01/1+"},
	{"a listing is earlier than what happened since", "[C@C1/1+1] [L@-/1+3] [C@C2/2+4]", "C@C1/1· C@C1-01/1· C@C2/2+"},
	{"what follows for a listed version is behind the listing", "[D@-/1+5] [C@C1/1+1] [C@C2/2+2] [L@-/1+3]", "C@C1/1· C@C2/2+ C@C2-02/1· D@C2-01/1·"},
	{"what follows for a listed version is below a newer one", "[C@C1/1+1] [L@-/1+3] [M@-/2+4] [C@-/1+5]", "C@C1/1· C@C1-01/1· C@C1-03/1· M@C1-02/2·"},
	{"such a marker takes with it what follows", "[C@C1/1+1] [M@-/3+3] [D@-/3+5] [C@C2/2+2]", "C@C1/1· C@C2/2+ M@C2-01/3· D@C2-02/3·"},
}

// PairTables are the tables of paired mode. Tests must not change the order of the events, because
// number_reordered depends on it.
var PairTables = []Table{
	{"FM-40", "[C@C1]", "{C1,–}"},
	{"FM-41", "[D@D1, C@C1, C@C1]", "{C1,D1}"},
	{"FM-41 twice", "[C@C1, D@D1] [C@C1, D@D1]", "{C1,D1}d2"},
	{"FM-41 twice, the repeats in another order", "[C@C1, D@D1] [D@D1] [C@C1]", "{C1,D1}d2"},
	{"FM-42 reordered", "[D@D1] [C@C1]", "{C1,D1}2"},
	{"FM-42 in order", "[C@C1] [D@D1]", "{C1,D1}"},
	{"FM-43", "[C@C1, D@D1] [C@N]", "{C1,–} {N,D1}1"},
	{"FM-44", "[C@C1, D@D1] [C@C1, C@C17, D@D1]", "{C1,–}d1 {C17,D1}1d1"},
	{"FM-45", "[C@C1] [C@D1]", "{C1,–} {D1,–}"},
	{"FM-45 swapped", "[C@D1] [C@C1]", "{C1,–} {D1,–}"},
	{"FM-45 in one call", "[C@C1, C@D1]", "{C1,–} {D1,–}"},
	{"FM-46", "[D@D1] [D@D2]", "{–,D1}1 {–,D2}1"},
	{"FM-46 swapped", "[D@D2] [D@D1]", "{–,D1}1 {–,D2}1"},
	{"FM-47", "[C@Z] [C@C1] [D@D1]", "{Z,–} {C1,D1}"},
	{"FM-48", "[D@D2] [D@D1] [C@C1]", "{C1,D1}2 {–,D2}1"},
	{"FM-49 two null Created", "[C@-] [C@-]", "{0-01,–} {0-02,–}"},
	{"FM-49 two null Deleted", "[D@-] [D@-]", "{–,0-01}1 {–,0-02}1"},
	{"FM-49 null Created and Deleted", "[C@-] [D@-]", "{0-01,–} {–,0-02}1"},
	{"FM-50 marker", "[M@C1, D@D1]", "{–,C1 marker}1 {–,D1}1"},
	{"FM-51 another version with the same sequencer", "[C@C1/V, D@D1/V] [C@C1/V, D@D1/V, D@D1/other]", "V{C1,D1}d2 other{–,D1}1"},
	{"FM-52", "[C@1] [D@2] [D@3] [C@4] [C@5]", "{1,2} {–,3}1 {4,–} {5,–}"},
	{"FM-52 key1", "[C@1]", "{1,–}"},
	{"FM-52 of FM-26", "[C@1/v] [D@2/v] [C@3/v] [C@3/v] [D@4/v] [D@1/v1]", "v{1,2} v1{–,1}1 v{3,4}d1"},
	{"FM-52 with a third pair", "[C@1] [D@2] [D@3] [C@4] [C@5] [D@6]", "{1,2} {–,3}1 {4,–} {5,6}"},
	// The following tables are not from the filemanager.
	{"a Deleted that takes a Created from another one", "[C@C1] [D@D2] [D@D1]", "{C1,D1}1 {–,D2}1"},
}

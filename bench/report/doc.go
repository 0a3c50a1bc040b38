// Package report shows what a run of the bench found: as a table on a terminal, as
// JSON for programs, as plots, and as a page for people, RESULTS.md.
//
// It takes figures and curves, by scenario, and facts about the run, and knows nothing
// of what any of them means: that was decided by the scenario. Missed targets are shown
// first, wherever there is a first. What is drawn and written depends on nothing but
// what is given, so the same report is the same bytes.
//
// A file is replaced as a whole or not at all; a folder of plots is not: an error while
// it is written leaves some of the old ones.
package report

// Package report shows what a run of the bench found: as a table on a terminal, and as
// JSON for programs. The program bench/compare makes a page with plots of it.
//
// It takes figures and curves, by scenario, and facts about the run, and knows nothing of what any
// of them means: that was decided by the scenario. The same report is the same bytes. A file is
// replaced atomically.
package report

// Package page writes what a run of the bench found as a page for people, RESULTS.md:
// its tables, its plots and the prices that follow from them.
//
// It takes a report, and knows nothing of the meaning of its figures and curves: that
// was decided by the scenario. Missed targets come first. The same report is the same
// bytes.
//
// A file is replaced atomically. A folder of plots is not: an error while it is written leaves some
// of the old ones.
package page

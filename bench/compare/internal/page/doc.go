// Package page writes the results of a run of the bench as a page for people, RESULTS.md, with
// tables, plots and prices.
//
// Its input is a report. The scenario defines the meaning of figures and curves; this package does
// not interpret them. Missed targets come first. The same report always produces the same bytes.
//
// A file is replaced atomically. A folder of plots is not replaced atomically: after an error it
// may contain some old plots.
package page

// Package report shows the results of a run of the bench: as a table on a terminal, and as JSON
// for programs. The program bench/compare also writes a page with plots.
//
// Its input is the figures and curves of each scenario, and facts about the run. It does not
// interpret them: the scenario defines their meaning. The same report always produces the same
// bytes. Files are replaced atomically.
package report

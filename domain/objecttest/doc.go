// Package objecttest has test data that tests of objects share, for the rules and for every
// store: the tables of the filemanager, and a bucket that generates random histories.
//
// A table is a script of events with the resulting rows. The histories come from a simulated
// bucket. So the expected current state comes from the state of the bucket, and not from the
// rules under test.
package objecttest

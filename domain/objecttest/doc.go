// Package objecttest has what tests of the state of objects share, for the rules and for every
// store: the tables of the filemanager, and a bucket that makes random histories.
//
// A table is a script of events and the rows that result. The histories are those of a bucket, so
// that what is current follows from the state of the bucket, and not from the rules under test.
package objecttest

// Package objecttest has the test data that the tests of the object rules and of every store share:
// the tables, which are the test cases of the filemanager (api/FILEMANAGER.md), and random histories.
//
// A table is a script of events with the resulting rows. The histories come from a simulated
// bucket. So the state of the bucket, and not the rules under test, determines the expected current
// version.
package objecttest

package cosmos

import "os"

// triesEveryCase is true in make campaign. Tests with very many cases then run all cases; otherwise they run
// a fixed sample.
var triesEveryCase = os.Getenv("MESSAGEHUB_EVERY_CASE") != ""

// A sample selects one of every oneOf cases of nested loops. Because oneOf has no common factor with the
// number of cases of the inner loops, each value of each loop is selected at least once.
type sample struct{ oneOf, seen int }

func (s *sample) isSelected() bool {
	s.seen++
	return triesEveryCase || (s.seen-1)%s.oneOf == 0
}

package cosmos

import "os"

// triesEveryCase makes tests with very many cases run all cases, as make campaign does. Without it, these
// tests run a fixed sample.
var triesEveryCase = os.Getenv("MESSAGEHUB_EVERY_CASE") != ""

// A sample selects one of every oneOf cases of nested loops. oneOf has no common factor with the number of
// cases of the inner loops, so every value of each loop is selected for some case.
type sample struct{ oneOf, seen int }

func (s *sample) isSelected() bool {
	s.seen++
	return triesEveryCase || (s.seen-1)%s.oneOf == 0
}

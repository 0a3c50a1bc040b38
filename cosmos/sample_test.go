package cosmos

import "os"

// triesEveryCase makes tests with very many cases try all of them, as in make campaign. Otherwise they
// try some, always the same ones.
var triesEveryCase = os.Getenv("MESSAGEHUB_EVERY_CASE") != ""

// A sample selects one of each oneOf cases. That number has no factor in common with the number of
// cases for which the outermost value stays the same, so each value is tried.
type sample struct{ oneOf, seen int }

func (s *sample) isSelected() bool {
	s.seen++
	return triesEveryCase || (s.seen-1)%s.oneOf == 0
}

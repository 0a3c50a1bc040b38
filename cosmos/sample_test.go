package cosmos

import "os"

// triesEveryCase says that the tests with very many cases try all of them, as in make campaign.
// Otherwise they try some, the same ones each time.
var triesEveryCase = os.Getenv("MESSAGEHUB_EVERY_CASE") != ""

// A sample takes one of each oneOf cases. That number has no factor in common with the number of
// cases in which the outermost value stays the same, so that each value is tried.
type sample struct{ oneOf, seen int }

func (s *sample) takes() bool {
	s.seen++
	return triesEveryCase || (s.seen-1)%s.oneOf == 0
}

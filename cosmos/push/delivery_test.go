package push

import (
	"os"
	"testing"

	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// triesEveryCase is true in make campaign. Tests with many cases then try every case.
var triesEveryCase = os.Getenv("MESSAGEHUB_EVERY_CASE") != ""

// A third of the rules run on a Session account, whose reads may be stale, and a fifth on an account
// whose reads are current. With the race detector, one rule in 13 runs, only on the Session account. The
// tests of package delivery run all rules on the stores in memory.
func TestDelivery(t *testing.T) {
	for i, v := range variants {
		oneOf := 3
		switch {
		case triesEveryCase && !raced:
			oneOf = 1
		case raced && i == 0:
			continue
		case raced:
			oneOf = 13
		case i == 0:
			oneOf = 5
		}
		t.Run(v.name, func(t *testing.T) {
			deliverytest.RunOneOf(t, oneOf, func(t *testing.T, clock *deliverytest.Clock) repositorytest.PushStores {
				engine := v.engine
				engine.Clock = clock.Now
				opts := v.opts
				opts.Clock = clock.Now
				r := newRig(t, engine)
				return r.stores(r.node(opts))
			})
		})
	}
}

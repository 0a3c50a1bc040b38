package push

import (
	"testing"

	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// Half of the rules are held on a Session account, whose reads may be old, and a third on one whose reads
// are current. The race detector sees some of the former. All rules are held over stores in memory.
func TestDelivery(t *testing.T) {
	for i, v := range variants {
		oneOf := 2
		switch {
		case raced && i == 0:
			continue
		case raced:
			oneOf = 8
		case i == 0:
			oneOf = 3
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

package push

import (
	"testing"

	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The race detector sees a quarter of the rules here, and all of them over stores in memory.
func TestDelivery(t *testing.T) {
	tried, oneOf := variants, 1
	if raced {
		tried, oneOf = variants[1:], 4
	}
	for _, v := range tried {
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

package push

import (
	"testing"

	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestDelivery(t *testing.T) {
	tried := variants
	if raced {
		tried = variants[1:]
	}
	for _, v := range tried {
		t.Run(v.name, func(t *testing.T) {
			deliverytest.Run(t, func(t *testing.T, clock *deliverytest.Clock) repositorytest.PushStores {
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

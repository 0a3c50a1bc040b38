package subscribe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

func TestADelivery_SaysWhyNothingIsCalled(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	for _, tc := range []struct {
		name     string
		standing domain.Standing
		resumed  int
		isPaused bool
		want     subscribe.Delivery
	}{
		{name: "held", standing: domain.Standing{Hold: later, Failures: 1}, want: subscribe.Delivery{State: subscribe.DeliveryHeld, Until: later, Failures: 1}},
		{name: "the hold has ended", standing: domain.Standing{Hold: now, Failures: 1}, want: subscribe.Delivery{State: subscribe.DeliveryFailing, Failures: 1}},
		{name: "open breaker", standing: domain.Standing{BreakerTo: later, Failures: 5}, want: subscribe.Delivery{State: subscribe.DeliveryFailing, Until: later, Failures: 5}},
		{name: "resumed", standing: domain.Standing{Hold: later, Failures: 5}, resumed: 1, want: subscribe.Delivery{State: subscribe.DeliveryActive}},
		{name: "paused", isPaused: true, want: subscribe.Delivery{State: subscribe.DeliveryPaused}},
		{name: "closed", standing: domain.Standing{State: domain.Closed}, want: subscribe.Delivery{State: subscribe.DeliveryClosed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &repository.Definition{Resumed: tc.resumed, Paused: tc.isPaused}
			require.Equal(t, &tc.want, subscribe.DeliveryOf(d, &tc.standing, now))
		})
	}
}

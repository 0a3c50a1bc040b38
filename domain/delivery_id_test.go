package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

const aSubscription = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

func TestADeliveryID_IsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subscription, err := domain.ParseSubscriptionID(aSubscription)
		require.NoError(t, err)
		want := domain.DeliveryID{Subscription: subscription, Entry: domain.EntryID{
			Priority: rapid.IntRange(0, domain.Priorities-1).Draw(t, "priority"),
			Number:   rapid.Int64Min(0).Draw(t, "number"),
		}}
		got, err := domain.ParseDeliveryID(want.String())
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestADelivery_HasOneID(t *testing.T) {
	for _, text := range []string{
		"", aSubscription, aSubscription + ".5", aSubscription + ".5.1.0", aSubscription + ".10.1", aSubscription + ".-1.1",
		aSubscription + ".5.-1", aSubscription + ".5.01", aSubscription + ".5.+1", aSubscription + ".05.1", aSubscription + ".5.1 ",
		aSubscription + ".5.9223372036854775808", "00000000-0000-0000-0000-000000000000.5.1", "s|" + aSubscription + ".5.1",
	} {
		_, err := domain.ParseDeliveryID(text)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
	}
}

package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParties_AreNamedByTheirList(t *testing.T) {
	for _, tc := range []struct {
		list PartyList
		want string
	}{
		{Producers, "producers"},
		{Channels, "channels"},
		{PartyID{Channels, "prices"}.Consumers(), "consumers|prices"},
	} {
		require.Equal(t, tc.want, tc.list.String())
		p, err := tc.list.Parse("a.B_c-1")
		require.NoError(t, err)
		require.Equal(t, "a.B_c-1", p.String())
		require.Equal(t, tc.list, p.List())
		for _, name := range []string{"", "a b", "a|b", "a%", "ä", "0123456789012345678901234567890123456789012345678901234567890123x"} {
			_, err := tc.list.Parse(name)
			require.Equal(t, Invalid, KindOf(err), name)
		}
	}
}

func TestAConsumer_IsFoundByItsCursor(t *testing.T) {
	channel, err := Channels.Parse("prices")
	require.NoError(t, err)
	consumer, err := channel.Consumers().Parse("billing")
	require.NoError(t, err)
	require.Equal(t, "c|prices|billing", consumer.Cursor().String())
	found, ok := ConsumerOf(consumer.Cursor())
	require.True(t, ok)
	require.Equal(t, consumer, found)
	require.Equal(t, channel, found.Channel())
	require.Equal(t, "consumer prices/billing", consumer.Describe())
	require.Equal(t, "channel prices", channel.Describe())
	require.Equal(t, channel.Stream(), found.Stream())
	require.Equal(t, "channel|prices", channel.Stream().String())
	for _, other := range []string{"s|0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", "c|prices"} {
		id, err := ParseCursorID(other)
		require.NoError(t, err)
		_, ok := ConsumerOf(id)
		require.False(t, ok, other)
	}
}

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// Some clients send the session filter as a described value, others as a plain value. The reply must have the same
// form, because a client understands no other.
func TestGrantedSource_HasTheFormOfTheRequest(t *testing.T) {
	described := func(v any) any { return amqp.Described{Descriptor: uint64(0x137000000C), Value: v} }
	text := func(s string) *string { return &s }
	other := amqp.Entry{Key: amqp.Symbol("other"), Value: "x"}
	for name, tc := range map[string]struct {
		asked   any
		id      *string
		granted any
	}{
		"a name, described":    {described("a"), text("a"), described("s")},
		"a name, bare":         {"a", text("a"), "s"},
		"an empty name":        {described(""), text(""), described("s")},
		"the next, described":  {described(nil), nil, described("s")},
		"the next, bare":       {nil, nil, "s"},
		"something else, bare": {int32(1), nil, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := amqp.Map{other, {Key: sessionFilter, Value: tc.asked}}
			attach := &amqp.Attach{Source: &amqp.Source{Address: "q", Filter: asked}}
			f, found := sessionFilterOf(attach)
			require.True(t, found)
			require.Equal(t, tc.id, f.id)
			require.Equal(t, amqp.Map{other, {Key: sessionFilter, Value: tc.granted}}, f.grantedSource(attach, "s").Filter)
			require.Equal(t, tc.asked, asked[1].Value, "what was asked is not changed")
		})
	}
	_, found := sessionFilterOf(&amqp.Attach{Source: &amqp.Source{Filter: amqp.Map{other}}})
	require.False(t, found)
}

func TestToTicks_EqualsTicksOfDotNet(t *testing.T) {
	require.EqualValues(t, 621_355_968_000_000_000, toTicks(time.Unix(0, 0)))
	require.EqualValues(t, 630_822_816_000_000_001, toTicks(time.Date(2000, 1, 1, 0, 0, 0, 100, time.UTC)))
}

func TestAddressOf_ReadsEveryForm(t *testing.T) {
	for address, want := range map[string]string{
		"q":                                     "q",
		"/q/":                                   "q",
		"amqps://host:5671/a/b":                 "a/b",
		"T/subscriptions/S":                     "T/Subscriptions/S",
		"sb://host/T/SUBSCRIPTIONS/S":           "T/Subscriptions/S",
		"amqp://host":                           "",
		"t/Subscriptions/s/$DeadLetterQueue":    "t/Subscriptions/s/$DeadLetterQueue",
		"q/$Transfer/$DeadLetterQueue":          "q/$Transfer/$DeadLetterQueue",
		"amqp://host/q/$deadletterqueue":        "q/$deadletterqueue",
		"amqp://host/q/$management":             "q/$management",
		"amqp://host/q/$deadletterqueue/$cbsno": "q/$deadletterqueue/$cbsno",
	} {
		require.Equal(t, want, addressOf(address), address)
	}
	for path, want := range map[string]string{
		"q/$DeadLetterQueue": "q", "q/$Transfer/$DeadLetterQueue": "q", "q/$deadletterqueue/$Management": "q", "q": "q", "$cbs": "$cbs",
	} {
		require.Equal(t, want, entityOf(path), path)
	}
}

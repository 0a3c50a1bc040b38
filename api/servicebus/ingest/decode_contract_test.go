package ingest

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestContract_RejectsAMissingField(t *testing.T) {
	type notification = contract.DataAvailableNotificationContract
	for _, tc := range []struct {
		name   string
		change func(*notification)
		says   string
	}{
		{"an id that is no GUID", func(c *notification) { c.UUID = "4711" }, "UUID: event id: want a UUID"},
		{"an empty id", func(c *notification) { c.UUID = strings.Repeat("0", 32) }, "UUID: event id: the nil UUID"},
		{"no recipient", func(c *notification) { c.Recipient = "" }, "recipient: actor id: want 1 to 64 characters"},
		{"an empty GUID as recipient", func(c *notification) { c.Recipient = "{00000000-0000-0000-0000-000000000000}" }, "recipient: actor id: the empty GUID"},
		{"a recipient out of alphabet", func(c *notification) { c.Recipient = "5790 001330552" }, "recipient: actor id: want only"},
		{"no message type", func(c *notification) { c.MessageType = "" }, "messageType: content type: want 1 to 128 characters"},
		{"a blank message type", func(c *notification) { c.MessageType = " " }, "messageType: content type: want no blank"},
		{"no origin", func(c *notification) { c.Origin = "" }, "origin: origin: want 1 to 64 characters"},
		{"the unknown origin", func(c *notification) { c.Origin = "Unknown" }, `origin: origin: "Unknown" is unknown here; known are`},
		{"the number of the unknown origin", func(c *notification) { c.Origin = "0" }, `origin: origin: "0" is unknown here`},
		{"a number that is no origin", func(c *notification) { c.Origin = "99" }, `origin: origin: "99" is unknown here`},
		{"an origin in another case", func(c *notification) { c.Origin = "timeseries" }, `origin: origin: "timeseries" is unknown here`},
		{"no weight", func(c *notification) { c.RelativeWeight = 0 }, "relativeWeight: weight: want at least 1 (KB), got 0"},
		{"a negative weight", func(c *notification) { c.RelativeWeight = math.MinInt32 }, "relativeWeight: weight: want at least 1 (KB), got -2147483648"},
		{"a document type with a comma", func(c *notification) { c.DocumentType = "a,b" }, "documentType: document type: want printable ASCII"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events, _, rejected := testDecoder(MessageLimits{}).decode(inContract(t, validNotification(tc.change)))
			require.Empty(t, events)
			require.NotNil(t, rejected)
			require.Equal(t, "invalid", rejected.Reason)
			require.Contains(t, rejected.Description, "because of a fault.")
			require.Contains(t, rejected.Description, "\n"+tc.says)
		})
	}
}

func TestAWeightThatOverflowsIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes string
		got   string
	}{
		"one more than 32 bits hold":          {"\x30\x80\x80\x80\x80\x08", "2147483648"},
		"one whose last 32 bits are a weight": {"\x30\x81\x80\x80\x80\x10", "4294967297"},
		"one that 64 bits hold just so":       {"\x30\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807"},
		"one that a sound one follows":        {"\x30\x81\x80\x80\x80\x10\x30\x05", "4294967297"},
	} {
		t.Run(name, func(t *testing.T) {
			m := inContract(t, validNotification(func(c *contract.DataAvailableNotificationContract) { c.RelativeWeight = 0 }))
			m.Body = append(m.Body, tc.bytes...)
			events, _, rejected := testDecoder(MessageLimits{}).decode(m)
			require.Empty(t, events)
			require.NotNil(t, rejected)
			require.Contains(t, rejected.Description, "relativeWeight: weight: want at most 2147483647 (KB), got "+tc.got)
		})
	}
}

func TestContract_IsDecodedLikeTheOriginal(t *testing.T) {
	type notification = contract.DataAvailableNotificationContract
	sound := validEvent(t)
	gln, err := domain.ParseActorID("5790001330552")
	require.NoError(t, err)
	documentType, err := domain.ParseDocumentType("timeseries")
	require.NoError(t, err)
	for _, tc := range []struct {
		name   string
		change func(*notification)
		want   func(*domain.Event)
	}{
		{"an id in upper case", func(c *notification) { c.UUID = strings.ToUpper(someID) }, nil},
		{"an id without dashes", func(c *notification) { c.UUID = strings.ReplaceAll(someID, "-", "") }, nil},
		{"a recipient in braces", func(c *notification) { c.Recipient = " {" + strings.ToUpper(someActor) + "}" }, nil},
		{"a recipient in parentheses", func(c *notification) { c.Recipient = "(" + someActor + ")" }, nil},
		{"a GLN", func(c *notification) { c.Recipient = "5790001330552" }, func(e *domain.Event) { e.Recipient = gln }},
		{"an origin as a number", func(c *notification) { c.Origin = "2" }, nil},
		{"an origin with blanks", func(c *notification) { c.Origin = " TimeSeries " }, nil},
		{"Wholesale", func(c *notification) { c.Origin = "Wholesale" }, func(e *domain.Event) { e.Origin = domain.Aggregations }},
		{"Aggregations, which the original refused", func(c *notification) { c.Origin = "Aggregations" }, func(e *domain.Event) { e.Origin = domain.Aggregations }},
		{"the number of Wholesale", func(c *notification) { c.Origin = "3" }, func(e *domain.Event) { e.Origin = domain.Aggregations }},
		{"no document type", func(c *notification) { c.DocumentType = "" }, func(e *domain.Event) { e.DocumentType = documentType }},
		{"a blank document type", func(c *notification) { c.DocumentType = " \t" }, func(e *domain.Event) { e.DocumentType = documentType }},
		{"no bundling", func(c *notification) { c.SupportsBundling = false }, func(e *domain.Event) { e.SupportsBundling = false }},
		{"the largest weight", func(c *notification) { c.RelativeWeight = math.MaxInt32 }, func(e *domain.Event) { e.Weight = math.MaxInt32 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := sound
			if tc.want != nil {
				tc.want(&want)
			}
			events, _, rejected := testDecoder(MessageLimits{}).decode(inContract(t, validNotification(tc.change)))
			require.Nil(t, rejected)
			require.Equal(t, []domain.Event{want}, events)
		})
	}
}

func TestAConfiguredOriginIsAccepted(t *testing.T) {
	settlements, err := domain.ParseOrigin("Settlements")
	require.NoError(t, err)
	store := memory.New(memory.Options{})
	options := hub.Options{Groups: domain.DefaultGroups().With(settlements, domain.Group{})}
	d := newDecoder(MessageLimits{}, hub.New(store, store, store, options).Check)
	events, _, rejected := d.decode(inContract(t, validNotification(func(c *contract.DataAvailableNotificationContract) { c.Origin = "Settlements" })))
	require.Nil(t, rejected)
	require.Equal(t, settlements, events[0].Origin)
}

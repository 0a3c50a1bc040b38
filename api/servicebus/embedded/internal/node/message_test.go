package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

func TestMessage_KeepsForeignSections(t *testing.T) {
	group, priority := "session", uint8(100)
	var sent amqp.Sections
	sent.SetHeader(amqp.MessageHeader{Durable: true, Priority: &priority})
	sent.SetDeliveryAnnotations(amqp.Map{{Key: amqp.Symbol("x-opt-mine"), Value: "a"}})
	sent.SetMessageAnnotations(amqp.Map{
		{Key: amqp.Symbol("x-opt-other"), Value: int32(5)},
		{Key: partitionKey, Value: nil},
		{Key: sequenceNumber, Value: "a lie"},
		{Key: deadLetterSource, Value: int64(1)},
	})
	sent.SetProperties(amqp.Properties{MessageID: uint64(42), CorrelationID: amqp.UUID{1}, GroupID: &group, UserID: []byte("me")})
	sent.SetApplicationProperties(amqp.Map{{Key: "k", Value: int8(-1)}})
	sent.SetValue(amqp.List{"any", int32(1)})
	sent.Footer = []byte{0, 0x53, 0x78, 0xc1, 1, 0}

	m, err := decodeMessage(sent.Append(nil))
	require.NoError(t, err)
	require.Equal(t, "42", m.ID)
	require.Equal(t, "01000000-0000-0000-0000-000000000000", m.CorrelationID)
	require.Equal(t, "session", *m.SessionID)
	require.Equal(t, sent.ApplicationProperties, m.ApplicationProperties)

	m.SequenceNumber, m.EnqueuedAt, m.ExpiresAt, m.DeliveryCount = 7, time.UnixMilli(1000), time.UnixMilli(61000), 3
	token, until := bus.LockToken{1, 2, 3, 4}, time.UnixMilli(5000)
	encoded, err := encodeMessage(&m, token, until)
	require.NoError(t, err)
	got, err := amqp.Split(encoded)
	require.NoError(t, err)
	require.Equal(t, sent.Body, got.Body)
	require.Equal(t, sent.Footer, got.Footer)
	require.Equal(t, sent.Properties, got.Properties, "byte for byte, id and all")
	require.Equal(t, sent.ApplicationProperties, got.ApplicationProperties)
	h, err := got.ReadHeader()
	require.NoError(t, err)
	ttl := uint32(60000)
	require.Equal(t, amqp.MessageHeader{Durable: true, Priority: &priority, TTL: &ttl, DeliveryCount: 3}, h)
	annotations, err := got.ReadMessageAnnotations()
	require.NoError(t, err)
	require.Equal(t, amqp.Map{
		{Key: amqp.Symbol("x-opt-other"), Value: int32(5)},
		{Key: partitionKey, Value: nil},
		{Key: sequenceNumber, Value: int64(7)},
		{Key: enqueuedTime, Value: amqp.Timestamp(1000)},
		{Key: lockedUntil, Value: amqp.Timestamp(5000)},
	}, annotations)
	deliveryAnnotations, err := got.ReadDeliveryAnnotations()
	require.NoError(t, err)
	require.Equal(t, amqp.Map{{Key: amqp.Symbol("x-opt-mine"), Value: "a"}, {Key: lockToken, Value: amqp.UUID(token)}}, deliveryAnnotations)
	require.Equal(t, []byte{4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, deliveryTag(token), "the byte order of .NET")
}

func TestRewrittenFields_TakePrecedence(t *testing.T) {
	var sent amqp.Sections
	sent.SetProperties(amqp.Properties{MessageID: "id", Subject: "old", ContentEncoding: "zip"})
	m, err := decodeMessage(sent.Append(nil))
	require.NoError(t, err)
	m.Subject, m.CorrelationID, m.Rewritten = "new", "c", true
	encoded, err := encodeMessage(&m, bus.LockToken{}, time.Time{})
	require.NoError(t, err)
	got, err := amqp.Split(encoded)
	require.NoError(t, err)
	p, err := got.ReadProperties()
	require.NoError(t, err)
	require.Equal(t, amqp.Properties{MessageID: "id", Subject: "new", CorrelationID: "c", ContentEncoding: "zip"}, p)
}

func TestDecode_RefusesAnnotationsOfAWrongType(t *testing.T) {
	for _, key := range []amqp.Symbol{scheduledTime, partitionKey} {
		var sent amqp.Sections
		sent.SetMessageAnnotations(amqp.Map{{Key: key, Value: true}})
		_, err := decodeMessage(sent.Append(nil))
		var said *amqp.Error
		require.ErrorAs(t, err, &said)
		require.Equal(t, amqp.InvalidField, said.Condition)
	}
}

// These messages are valid AMQP, but Azure's Go client ends its link or panics when it decodes one. The node must
// refuse them.
func TestDecode_RefusesMessagesThatClientsCannotRead(t *testing.T) {
	binary := amqp.Map{{Key: []byte("k"), Value: int32(1)}}
	property := func(v any) func(*amqp.Sections) {
		return func(s *amqp.Sections) { s.SetApplicationProperties(amqp.Map{{Key: "k", Value: v}}) }
	}
	for name, spoil := range map[string]func(*amqp.Sections){
		"a character":                      property(amqp.Char('c')),
		"a decimal":                        property(amqp.Decimal128{1}),
		"a decimal of 8 bytes":             property(amqp.Decimal64{1}),
		"a decimal of 4 bytes":             property(amqp.Decimal32{1}),
		"a body that is a decimal":         func(s *amqp.Sections) { s.SetValue(amqp.Decimal32{1}) },
		"a binary key":                     func(s *amqp.Sections) { s.SetMessageAnnotations(binary) },
		"a binary key for the next broker": func(s *amqp.Sections) { s.SetDeliveryAnnotations(binary) },
		"a binary key within": func(s *amqp.Sections) {
			s.SetMessageAnnotations(amqp.Map{{Key: amqp.Symbol("x-opt-m"), Value: binary}})
		},
		"a binary key in the body":   func(s *amqp.Sections) { s.SetValue(binary) },
		"a binary key in the footer": func(s *amqp.Sections) { s.Footer = []byte{0, 0x53, 0x78, 0xc1, 5, 2, 0xa0, 1, 'k', 0x40} },
	} {
		t.Run(name, func(t *testing.T) {
			var sent amqp.Sections
			sent.SetProperties(amqp.Properties{MessageID: "id"})
			_, err := decodeMessage(sent.Append(nil))
			require.NoError(t, err)
			spoil(&sent)
			_, err = decodeMessage(sent.Append(nil))
			var said *amqp.Error
			require.ErrorAs(t, err, &said)
			require.Equal(t, amqp.DecodeError, said.Condition)
			require.ErrorContains(t, err, "could not read the message")
		})
	}
}

func TestSettlementOf_MapsEachDeliveryState(t *testing.T) {
	changes := amqp.Map{{Key: amqp.Symbol("n"), Value: int64(1)}}
	for name, tc := range map[string]struct {
		state  any
		want   bus.Settlement
		answer any
	}{
		"accepted":             {amqp.Accepted{}, bus.Settlement{Outcome: bus.Complete}, amqp.Accepted{}},
		"released":             {amqp.Released{}, bus.Settlement{Outcome: bus.Release}, amqp.Released{}},
		"nothing":              {nil, bus.Settlement{Outcome: bus.Release}, amqp.Released{}},
		"modified":             {amqp.Modified{Annotations: changes}, bus.Settlement{Outcome: bus.Abandon, Properties: map[string]any{"n": int64(1)}}, amqp.Modified{Annotations: changes}},
		"undeliverable":        {amqp.Modified{UndeliverableHere: true}, bus.Settlement{Outcome: bus.Defer}, amqp.Modified{UndeliverableHere: true}},
		"rejected for nothing": {amqp.Rejected{}, bus.Settlement{Outcome: bus.DeadLetter}, amqp.Rejected{}},
		"dead": {
			amqp.Rejected{Error: &amqp.Error{Condition: deadLetterAsked, Info: amqp.Map{{Key: amqp.Symbol(reasonProperty), Value: "r"}, {Key: amqp.Symbol(descriptionProperty), Value: "d"}, {Key: amqp.Symbol("n"), Value: int64(1)}}}},
			bus.Settlement{Outcome: bus.DeadLetter, Reason: "r", Description: "d", Properties: map[string]any{"n": int64(1)}},
			amqp.Rejected{},
		},
		"rejected for a reason": {
			amqp.Rejected{Error: amqp.Errorf("mine", "no")}, bus.Settlement{Outcome: bus.DeadLetter, Reason: "mine", Description: "no"}, amqp.Rejected{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			how, answer := settlementOf(tc.state)
			require.Equal(t, tc.want, how)
			require.Equal(t, tc.answer, answer)
		})
	}
}

func TestMerge_KeepsTheOrderOfProperties(t *testing.T) {
	var s amqp.Sections
	s.SetApplicationProperties(amqp.Map{{Key: "a", Value: int8(1)}, {Key: "b", Value: amqp.Symbol("x")}, {Key: "c", Value: amqp.Timestamp(1000)}})
	read, err := Codec{}.Decode(s.ApplicationProperties)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": int64(1), "b": "x", "c": time.UnixMilli(1000).UTC()}, read)
	merged, err := Codec{}.Merge(s.ApplicationProperties, map[string]any{"c": "new", "d": time.UnixMilli(5)}, []string{"b"})
	require.NoError(t, err)
	got, err := applicationProperties(merged)
	require.NoError(t, err)
	require.Equal(t, amqp.Map{{Key: "a", Value: int8(1)}, {Key: "c", Value: "new"}, {Key: "d", Value: amqp.Timestamp(5)}}, got)
	none, err := Codec{}.Merge(merged, nil, []string{"a", "c", "d"})
	require.NoError(t, err)
	require.Nil(t, none)
	for _, v := range []any{struct{}{}, amqp.Char('c'), amqp.Decimal32{}} {
		_, err = Codec{}.Merge(nil, map[string]any{"x": v}, nil)
		require.ErrorIs(t, err, bus.ErrInvalid)
	}
}

// Whatever a client sends as a message or request, the node either refuses it or can deliver it.
func FuzzMessagesAndRequests(f *testing.F) {
	var s amqp.Sections
	group := "s"
	s.SetProperties(amqp.Properties{MessageID: "id", GroupID: &group})
	s.SetMessageAnnotations(amqp.Map{{Key: scheduledTime, Value: amqp.Timestamp(1)}})
	s.SetApplicationProperties(amqp.Map{{Key: "operation", Value: "com.microsoft:peek-message"}})
	s.SetValue(amqp.Map{{Key: "lock-tokens", Value: amqp.Array{Of: amqp.OfUUID, Values: []any{amqp.UUID{1}}}}})
	f.Add(s.Append(nil))
	var envelope amqp.Sections
	envelope.Body = amqp.Append([]byte{0, 0x53, 0x75}, s.Append(nil))
	f.Add(envelope.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, format := range []uint32{0, batchFormat} {
			messages, err := decodeBatch(format, b)
			if err != nil {
				continue
			}
			for i := range messages {
				encoded, err := encodeMessage(&messages[i], bus.LockToken{1}, time.UnixMilli(1))
				if err != nil {
					t.Fatalf("what was let in cannot be handed out: %v", err)
				}
				if err := checkReadable(encoded); err != nil {
					t.Fatalf("what was handed out cannot be read: %v", err)
				}
				if _, err := decodeMessage(encoded); err != nil {
					t.Fatalf("what was handed out cannot be forwarded: %v", err)
				}
				if _, err := (Codec{}).Decode(messages[i].ApplicationProperties); err != nil {
					t.Fatalf("properties that were let in cannot be read: %v", err)
				}
			}
		}
		if r, err := readRequest(b); err == nil {
			_, _ = lockTokens(r)
			_, _ = elementsOf[int64](r.arguments.Get("sequence-numbers"))
		}
	})
}

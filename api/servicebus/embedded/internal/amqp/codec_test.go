package amqp_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// generateScalars generates values of every scalar type.
func generateScalars() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.Uint8(), func(v uint8) any { return v }),
		rapid.Map(rapid.Int8(), func(v int8) any { return v }),
		rapid.Map(rapid.Uint16(), func(v uint16) any { return v }),
		rapid.Map(rapid.Int16(), func(v int16) any { return v }),
		rapid.Map(rapid.Uint32(), func(v uint32) any { return v }),
		rapid.Map(rapid.Int32(), func(v int32) any { return v }),
		rapid.Map(rapid.Uint64(), func(v uint64) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Float32(), func(v float32) any { return v }),
		rapid.Map(rapid.Float64(), func(v float64) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return amqp.Timestamp(v) }),
		rapid.Map(rapid.Uint32(), func(v uint32) any { return amqp.Char(v) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(v []byte) any { return amqp.UUID(v) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(v []byte) any { return amqp.Decimal128(v) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 8, 8), func(v []byte) any { return amqp.Decimal64(v) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 4, 4), func(v []byte) any { return amqp.Decimal32(v) }),
		rapid.Map(rapid.String(), func(v string) any { return v }),
		rapid.Map(rapid.StringMatching(`[a-z:-]{0,300}`), func(v string) any { return amqp.Symbol(v) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 400), func(v []byte) any { return v }),
	)
}

// generateValues generates scalar values, and compound values that are nested up to depth levels.
func generateValues(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return generateScalars()
	}
	inner := generateValues(depth - 1)
	return rapid.OneOf(
		generateScalars(),
		rapid.Map(rapid.SliceOfN(inner, 0, 20), func(v []any) any { return amqp.List(v) }),
		rapid.Map(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) amqp.Entry {
			return amqp.Entry{Key: generateScalars().Draw(t, "key"), Value: inner.Draw(t, "value")}
		}), 0, 20), func(v []amqp.Entry) any { return amqp.Map(v) }),
		rapid.Custom(func(t *rapid.T) any {
			return amqp.Described{Descriptor: rapid.Uint64().Draw(t, "descriptor"), Value: inner.Draw(t, "value")}
		}),
		rapid.Map(rapid.SliceOf(rapid.Int64()), func(v []int64) any {
			array := amqp.Array{Of: amqp.OfLong, Values: make([]any, len(v))}
			for i := range v {
				array.Values[i] = v[i]
			}
			return array
		}),
		rapid.Map(rapid.SliceOf(rapid.String()), func(v []string) any {
			array := amqp.Array{Of: amqp.OfString, Descriptor: amqp.Symbol("text"), Values: make([]any, len(v))}
			for i := range v {
				array.Values[i] = v[i]
			}
			return array
		}),
	)
}

func TestValues_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := generateValues(3).Draw(t, "value")
		encoded := amqp.Append(nil, v)
		back, err := amqp.Unmarshal(encoded)
		require.NoError(t, err)
		require.Equal(t, encoded, amqp.Append(nil, back), "%#v", v) // compare the encodings, because NaN is not equal to itself
		skipped, err := amqp.NewDecoder(append(encoded, 1)).Skip()
		require.NoError(t, err)
		require.Equal(t, encoded, skipped)
	})
}

func TestPerformatives_RoundTrip(t *testing.T) {
	one, two, second := uint32(1), uint32(2), amqp.ReceiverSecond
	channel, yes := uint16(7), true
	reason := &amqp.Error{Condition: amqp.NotFound, Description: "no", Info: amqp.Map{{Key: amqp.Symbol("a"), Value: "b"}}}
	for _, p := range []amqp.Performative{
		&amqp.Open{ContainerID: "c", Hostname: "h", MaxFrameSize: 512, ChannelMax: 9, IdleTimeOut: 30, Properties: amqp.Map{{Key: amqp.Symbol("p"), Value: int32(1)}}},
		&amqp.Begin{RemoteChannel: &channel, NextOutgoingID: 1, IncomingWindow: 2, OutgoingWindow: 3, HandleMax: 4},
		&amqp.Attach{Name: "n", Handle: 3, Role: true, SenderSettle: &second, ReceiverSettle: &second, InitialDeliveryCount: &two, MaxMessageSize: 10},
		&amqp.Flow{NextIncomingID: &one, IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4, Handle: &one, DeliveryCount: &two, LinkCredit: &two, Drain: true, Echo: true},
		&amqp.Transfer{Handle: 1, DeliveryID: &two, DeliveryTag: []byte{1}, MessageFormat: &one, Settled: &yes, More: true, State: amqp.Accepted{}, Aborted: true},
		&amqp.Disposition{Role: true, First: 1, Last: &two, Settled: true, State: amqp.Rejected{Error: reason}},
		&amqp.Disposition{First: 1, State: amqp.Modified{DeliveryFailed: true, UndeliverableHere: true, Annotations: amqp.Map{{Key: amqp.Symbol("x"), Value: true}}}},
		&amqp.Disposition{First: 1, State: amqp.Released{}},
		&amqp.Detach{Handle: 1, Closed: true, Error: reason},
		&amqp.End{Error: reason},
		&amqp.Close{},
		&amqp.Mechanisms{Names: []amqp.Symbol{"PLAIN", "ANONYMOUS"}},
		&amqp.Init{Mechanism: "PLAIN", Response: []byte("secret"), Hostname: "h"},
		&amqp.Outcome{Code: 1},
	} {
		encoded := amqp.AppendPerformative(nil, p)
		back, rest, err := amqp.ReadPerformative(append(encoded, "rest"...))
		require.NoError(t, err)
		require.Equal(t, p, back)
		require.Equal(t, "rest", string(rest))
		require.NotEmpty(t, amqp.Describe(p))
	}
}

// The server must echo the fields of a source that it does not interpret.
func TestSource_IsEchoedWithUnknownFields(t *testing.T) {
	source := amqp.Described{Descriptor: uint64(0x28), Value: amqp.List{
		"address", uint32(1), amqp.Symbol("never"), uint32(5), nil,
		amqp.Map{{Key: amqp.Symbol("node"), Value: "x"}},
		amqp.Symbol("move"),
		amqp.Map{{Key: amqp.Symbol("f"), Value: "filter"}},
		nil,
		amqp.Array{Of: amqp.OfSymbol, Values: []any{amqp.Symbol("outcome")}},
	}}
	attach := amqp.Append(nil, amqp.Described{Descriptor: uint64(0x12), Value: amqp.List{"name", uint32(0), true, nil, nil, source}})
	p, _, err := amqp.ReadPerformative(attach)
	require.NoError(t, err)
	a := p.(*amqp.Attach)
	require.Equal(t, "address", a.Source.(*amqp.Source).Address)
	require.Equal(t, "filter", a.Source.(*amqp.Source).Filter.Get("f"))
	back, _, err := amqp.ReadPerformative(amqp.AppendPerformative(nil, a))
	require.NoError(t, err)
	require.Equal(t, a.Source, back.(*amqp.Attach).Source)
	require.Equal(t, amqp.Append(nil, source), amqp.Append(nil, bytesOfSource(t, amqp.AppendPerformative(nil, a))))
}

func bytesOfSource(t *testing.T, attach []byte) any {
	t.Helper()
	v, err := amqp.Unmarshal(attach)
	require.NoError(t, err)
	return v.(amqp.Described).Value.(amqp.List)[5]
}

func TestDecode_RefusesSizesBeyondTheInput(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                           {},
		"an unknown constructor":            {0x3f},
		"a string beyond the end":           {0xa1, 200, 'x'},
		"a string of 4 GB":                  {0xb1, 0xff, 0xff, 0xff, 0xff},
		"a list of 4 billion elements":      {0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff},
		"a map of 4 billion entries":        {0xd1, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xfe},
		"an array of 4 billion nulls":       {0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40},
		"an array of 4 billion empty lists": {0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x45},
		"a key without a value":             {0xc1, 2, 1, 0x40},
		"an element too few":                {0xc0, 2, 2, 0x40},
		"an element too many":               {0xc0, 3, 1, 0x40, 0x40},
		"text that is not UTF-8":            {0xa1, 1, 0xff},
		"something behind the value":        {0x40, 0x40},
		"a described value without value":   {0x00, 0x40},
	} {
		_, err := amqp.Unmarshal(b)
		require.Error(t, err, name)
	}
}

func TestDecode_RefusesDeepNesting(t *testing.T) {
	described := append(bytes.Repeat([]byte{0, 0x40}, 1_000_000), 0x40)
	_, err := amqp.Unmarshal(described)
	require.ErrorContains(t, err, "deep")
	_, err = amqp.NewDecoder(described).Skip()
	require.ErrorContains(t, err, "deep")
	descriptors := append(bytes.Repeat([]byte{0}, 1_000_000), 0x40)
	_, err = amqp.Unmarshal(descriptors)
	require.ErrorContains(t, err, "deep")
	list := any(nil)
	for range amqp.MaxNesting + 1 {
		list = amqp.List{list}
	}
	_, err = amqp.Unmarshal(amqp.Append(nil, list))
	require.ErrorContains(t, err, "deep")
}

// If elements of size zero were not limited, a small frame could make the decoder allocate much memory.
func TestDecode_BoundsElementsOfSizeZero(t *testing.T) {
	list := amqp.List{}
	nulls := amqp.Array{Of: 0x40, Values: make([]any, 1000)}
	for range 4 {
		list = append(list, nulls)
	}
	_, err := amqp.Unmarshal(amqp.Append(nil, list))
	require.NoError(t, err)
	_, err = amqp.Unmarshal(amqp.Append(nil, append(list, nulls)))
	require.ErrorContains(t, err, "size zero")
}

func TestReadFrame_RefusesInvalidSizes(t *testing.T) {
	for _, size := range []uint32{0, 7, 65537, 1 << 31, math.MaxUint32} {
		head := binary.BigEndian.AppendUint32(nil, size)
		_, err := amqp.ReadFrame(bytes.NewReader(append(head, 2, 0, 0, 0)), 65536)
		var said *amqp.Error
		require.ErrorAs(t, err, &said)
		require.Equal(t, amqp.FramingError, said.Condition)
	}
	_, err := amqp.ReadFrame(bytes.NewReader([]byte{0, 0, 0, 8, 5, 0, 0, 0}), 65536)
	require.ErrorContains(t, err, "whose header has 20")
}

func TestSplit_KeepsTheBytesOfSections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s amqp.Sections
		if rapid.Bool().Draw(t, "header") {
			s.SetHeader(amqp.MessageHeader{Durable: true, DeliveryCount: rapid.Uint32().Draw(t, "count")})
		}
		annotations := amqp.Map{{Key: amqp.Symbol("x-opt-a"), Value: generateScalars().Draw(t, "annotation")}}
		if rapid.Bool().Draw(t, "annotations") {
			s.SetDeliveryAnnotations(annotations)
			s.SetMessageAnnotations(annotations)
		}
		group := rapid.String().Draw(t, "group")
		s.SetProperties(amqp.Properties{MessageID: "id", Subject: "s", GroupID: &group, UserID: []byte{1}})
		s.SetApplicationProperties(amqp.Map{{Key: "k", Value: generateScalars().Draw(t, "property")}})
		for range rapid.IntRange(0, 3).Draw(t, "data") {
			s.Body = append(s.Body, 0, 0x53, 0x75)
			s.Body = amqp.Append(s.Body, rapid.SliceOf(rapid.Byte()).Draw(t, "body"))
		}
		whole := s.Append(nil)
		back, err := amqp.Split(whole)
		require.NoError(t, err)
		require.Equal(t, s, back)
		require.Equal(t, whole, back.Append(nil))
		p, err := back.ReadProperties()
		require.NoError(t, err)
		require.Equal(t, amqp.Properties{MessageID: "id", Subject: "s", GroupID: &group, UserID: []byte{1}}, p)
		_, err = back.ReadBodies()
		require.NoError(t, err)
	})
}

func TestSplit_RefusesSectionsInTheWrongOrder(t *testing.T) {
	section := func(code byte) []byte { return []byte{0, 0x53, code, 0x40} }
	for name, b := range map[string][]byte{
		"the header behind the body": append(section(0x77), section(0x70)...),
		"two headers":                append(section(0x70), section(0x70)...),
		"two values":                 append(section(0x77), section(0x77)...),
		"data and a value":           append(section(0x75), section(0x77)...),
		"no section":                 {0x40},
		"a section cut short":        {0, 0x53, 0x75},
		"another described value":    section(0x10),
	} {
		_, err := amqp.Split(b)
		require.Error(t, err, name)
	}
	var s amqp.Sections
	s.SetValue("v")
	s.Header = append([]byte{0, 0x53, 0x70}, amqp.Append(nil, "no list")...)
	_, err := s.ReadHeader()
	require.Error(t, err)
	s.Properties = append([]byte{0, 0x53, 0x73}, amqp.Append(nil, amqp.List{true})...)
	_, err = s.ReadProperties()
	require.ErrorContains(t, err, "field 1")
}

func FuzzReadingAnythingEnds(f *testing.F) {
	f.Add(amqp.Append(nil, amqp.Map{{Key: "k", Value: amqp.List{int64(1), "x", amqp.Described{Descriptor: uint64(1), Value: true}}}}))
	f.Add([]byte{0xe0, 4, 2, 0x56, 1, 0})
	f.Add(append(bytes.Repeat([]byte{0}, 40), 0x40))
	handle := uint32(1)
	f.Add(amqp.AppendPerformative(nil, &amqp.Transfer{Handle: 1, DeliveryID: &handle, State: amqp.Rejected{}}))
	f.Add(amqp.AppendPerformative(nil, &amqp.Attach{Name: "n", Source: &amqp.Source{Address: "a"}, Target: &amqp.Target{Address: "b"}}))
	f.Add([]byte(strings.Repeat("\x00\x53\x75\xa0\x01x", 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := amqp.Unmarshal(b); err == nil {
			encoded := amqp.Append(nil, v)
			again, err := amqp.Unmarshal(encoded)
			if err != nil {
				t.Fatalf("what was encoded cannot be read: %v", err)
			}
			if !bytes.Equal(encoded, amqp.Append(nil, again)) {
				t.Fatalf("%#v became %#v", v, again)
			}
		}
		if p, _, err := amqp.ReadPerformative(b); err == nil {
			encoded := amqp.AppendPerformative(nil, p)
			again, _, err := amqp.ReadPerformative(encoded)
			if err != nil || !bytes.Equal(encoded, amqp.AppendPerformative(nil, again)) {
				t.Fatalf("%s became another: %v", amqp.Describe(p), err)
			}
		}
		if s, err := amqp.Split(b); err == nil {
			if !bytes.Equal(b, s.Append(nil)) {
				t.Fatal("a message changed when it was split")
			}
			_, _ = s.ReadHeader()
			_, _ = s.ReadProperties()
			_, _ = s.ReadMessageAnnotations()
			_, _ = s.ReadApplicationProperties()
			_, _ = s.ReadBodies()
		}
		_, _ = amqp.ReadFrame(bytes.NewReader(b), 1<<16)
	})
}

func TestDescribe_WritesOneLine(t *testing.T) {
	count := uint32(7)
	for want, p := range map[string]amqp.Performative{
		"empty": nil,
		`attach Name=n Role=true Source=queue[{f session}] Target=there InitialDeliveryCount=7`: &amqp.Attach{
			Name: "n", Role: true, Source: &amqp.Source{Address: "queue", Filter: amqp.Map{{Key: amqp.Symbol("f"), Value: "session"}}},
			Target: &amqp.Target{Address: "there"}, InitialDeliveryCount: &count,
		},
		`detach Handle=7 Closed=true Error={amqp:not-found: no such queue}`: &amqp.Detach{Handle: 7, Closed: true, Error: amqp.Errorf(amqp.NotFound, "no such queue")},
		`transfer DeliveryTag=0aff Settled=false`:                           &amqp.Transfer{DeliveryTag: []byte{10, 255}, Settled: new(bool)},
	} {
		require.Equal(t, want, amqp.Describe(p))
	}
}

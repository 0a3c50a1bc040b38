package domain_test

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

func TestTheDigestIsTheSameForTheSameContent(t *testing.T) {
	a, b := validEvent(), validEvent()
	require.Equal(t, a.Digest(), b.Digest())

	b.ID = must(domain.ParseEventID("11111111-1111-1111-1111-111111111111"))
	require.Equal(t, a.Digest(), b.Digest(), "the id is not part of the content")
}

func TestAnyChangeOfContentChangesTheDigest(t *testing.T) {
	digests := map[domain.Digest]string{}
	for _, tc := range []struct {
		name   string
		change func(e *domain.Event)
	}{
		{"unchanged", func(*domain.Event) {}},
		{"recipient", func(e *domain.Event) { e.Recipient = actor("5790001330553") }},
		{"origin", func(e *domain.Event) { e.Origin = domain.Charges }},
		{"content type", func(e *domain.Event) { e.ContentType = contentType("timeseries-v2") }},
		{"case of the content type", func(e *domain.Event) { e.ContentType = contentType("Timeseries-v1") }},
		{"document type", func(e *domain.Event) { e.DocumentType = documentType("RSM013") }},
		{"content and document type swapped", func(e *domain.Event) {
			e.ContentType, e.DocumentType = contentType("RSM012"), documentType("timeseries-v1")
		}},
		{"support of bundling", func(e *domain.Event) { e.SupportsBundling = false }},
		{"weight", func(e *domain.Event) { e.Weight = 4 }},
		{"greatest weight", func(e *domain.Event) { e.Weight = math.MaxInt64 }},
		{"payload", func(e *domain.Event) { e.Payload = []byte(`{"kWh":13}`) }},
		{"payload with a trailing blank", func(e *domain.Event) { e.Payload = []byte(`{"kWh":12} `) }},
		{"no payload", func(e *domain.Event) { e.Payload = nil }},
		{"empty payload", func(e *domain.Event) { e.Payload = []byte{} }},
		{"payload null", func(e *domain.Event) { e.Payload = []byte("null") }},
	} {
		e := validEvent()
		tc.change(&e)
		same, again := digests[e.Digest()]
		require.False(t, again, "%s gives the digest of %s", tc.name, same)
		digests[e.Digest()] = tc.name
	}
}

// Digests are stored with events. If a new version of the hub computed different digests, it would
// refuse an event that is sent again after the update, as if its content had changed.
func TestTheDigestNeverChangesBetweenVersions(t *testing.T) {
	e := validEvent()
	digest := e.Digest()
	require.Equal(t, "8f03d82b9f776ca9c1e98f6f8597e22c", hex.EncodeToString(digest[:]))

	e.Payload, e.SupportsBundling, e.Weight = nil, false, math.MaxInt64
	digest = e.Digest()
	require.Equal(t, "4c018a941883ea6a19104cdbb88a8c89", hex.EncodeToString(digest[:]))
}

// cutInFour cuts text into four parts at random places. No part is empty.
func cutInFour(t *rapid.T, label, text string) [4]string {
	a := rapid.IntRange(1, len(text)-3).Draw(t, label+": first cut")
	b := rapid.IntRange(a+1, len(text)-2).Draw(t, label+": second cut")
	c := rapid.IntRange(b+1, len(text)-1).Draw(t, label+": third cut")
	return [4]string{text[:a], text[a:b], text[b:c], text[c:]}
}

func TestDigest_DiffersIfCharactersMoveBetweenFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab0.-]{4,40}`).Draw(t, "text")
		one, other := cutInFour(t, "one", text), cutInFour(t, "other", text)
		require.Equal(t, one == other, cutEvent(one).Digest() == cutEvent(other).Digest(), "%q and %q", one, other)
	})
}

func cutEvent(fields [4]string) *domain.Event {
	e := validEvent()
	e.Recipient, e.Origin = actor(fields[0]), origin(fields[1])
	e.ContentType, e.DocumentType = contentType(fields[2]), documentType(fields[3])
	return &e
}

func TestDigests_AreEqualOnlyForEqualContents(t *testing.T) {
	type content struct {
		recipient, origin, contentType, documentType string
		bundling                                     bool
		weight                                       int64
		payload                                      string
		hasPayload                                   bool
	}
	name := rapid.StringMatching(`[a1]{1,2}`)
	draw := rapid.Custom(func(t *rapid.T) content {
		c := content{
			recipient:    name.Draw(t, "recipient"),
			origin:       name.Draw(t, "origin"),
			contentType:  name.Draw(t, "content type"),
			documentType: name.Draw(t, "document type"),
			bundling:     rapid.Bool().Draw(t, "bundling"),
			weight:       rapid.SampledFrom([]int64{1, 2, 63, 64, 1 << 32, math.MaxInt64}).Draw(t, "weight"),
			hasPayload:   rapid.Bool().Draw(t, "has payload"),
		}
		if c.hasPayload {
			c.payload = rapid.SampledFrom([]string{"", "1", "a", "null", "{}", "\x01\x02"}).Draw(t, "payload")
		}
		return c
	})
	digest := func(c content) domain.Digest {
		e := cutEvent([4]string{c.recipient, c.origin, c.contentType, c.documentType})
		e.SupportsBundling, e.Weight, e.Payload = c.bundling, domain.Weight(c.weight), nil
		if c.hasPayload {
			e.Payload = []byte(c.payload)
		}
		return e.Digest()
	}
	contents := map[domain.Digest]content{}
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Draw(t, "content")
		earlier, again := contents[digest(c)]
		if again {
			require.Equal(t, earlier, c)
		}
		contents[digest(c)] = c
	})
}

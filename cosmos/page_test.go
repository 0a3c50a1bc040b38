package cosmos

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func numberedEvents(events []domain.Event, first domain.Sequence, gap func() domain.Sequence) []numberedEvent {
	all := make([]numberedEvent, len(events))
	for i := range events {
		all[i] = numberedEvent{Event: &events[i], digest: events[i].Digest(), sequence: first}
		first += 1 + gap()
	}
	return all
}

func decodeAll(t require.TestingT, p *drawerPage, cabinet domain.CabinetKey) []storedEvent {
	var got []storedEvent
	require.NoError(t, p.decodeEvents(cabinet, func(slot int, e *storedEvent) bool {
		require.Equal(t, p.Slot+len(got), slot)
		got = append(got, *e)
		return true
	}))
	return got
}

func TestPages_ReturnTheEventsThatWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actor := repositorytest.NewActor()
		n := rapid.IntRange(1, 3000).Draw(t, "events")
		events := repositorytest.Events(n, actor)
		for i := range events {
			events[i].Weight = domain.Weight(rapid.Int64Range(1, 1<<62).Draw(t, "weight"))
			events[i].SupportsBundling = rapid.Bool().Draw(t, "bundling")
			repositorytest.WithDocumentType(fmt.Sprintf("D%d", rapid.IntRange(0, 300).Draw(t, "type")))(&events[i])
			if rapid.Bool().Draw(t, "payload") {
				events[i].Payload = slices.Repeat([]byte{'7'}, rapid.IntRange(1, 40).Draw(t, "length"))
			}
		}
		cabinet := events[0].Cabinet()
		in := numberedEvents(events, 7, func() domain.Sequence {
			return domain.Sequence(rapid.IntRange(0, 1000).Draw(t, "gap"))
		})
		part := &drawerPart{Drawer: "d", Slot: 11, Count: n}

		var out []storedEvent
		for _, p := range pagesOf(&intent{ID: "intent"}, "object", part, in) {
			assert.LessOrEqual(t, base64.StdEncoding.EncodedLen(len(p.Events)), 66<<10)
			assert.Equal(t, 11+len(out), p.Slot, "pages are dense")
			out = append(out, decodeAll(t, p, cabinet)...)
			assert.Equal(t, 11+len(out), p.Until)
		}

		require.Len(t, out, n)
		payloadAt := int64(0)
		for i, got := range out {
			want := repository.StoredEvent{Event: events[i], Sequence: in[i].sequence}
			want.Payload = nil
			if length := int64(len(events[i].Payload)); length > 0 {
				want.PayloadAt = repository.Section{Object: "object", Offset: payloadAt, Length: length, Sum: repository.SumOf(events[i].Payload)}
				payloadAt += length
			}
			require.Equal(t, want, got.StoredEvent)
			require.Equal(t, in[i].digest, got.digest)
		}
	})
}

func FuzzDecodingAPageNeverPanics(f *testing.F) {
	events := repositorytest.Events(3, repositorytest.NewActor())
	data, _ := encodePage(numberedEvents(events, 1, func() domain.Sequence { return 0 }))
	data = data[:len(data)-4] // remove the checksum, because the fuzz target appends it
	f.Add(data, 3)
	f.Add(data[:len(data)-1], 3)
	f.Add([]byte{eventsVersion}, 0)
	cabinet := events[0].Cabinet()
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		p := drawerPage{Events: binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli)), Until: n}
		_ = p.decodeEvents(cabinet, func(_ int, e *storedEvent) bool {
			if e.Weight < 1 || e.Sequence < 0 {
				t.Fatalf("decoded an impossible event %+v", e)
			}
			return true
		})
	})
}

func TestADamagedPageIsRefused(t *testing.T) {
	events := repositorytest.Events(3, repositorytest.NewActor())
	data, _ := encodePage(numberedEvents(events, 1, func() domain.Sequence { return 0 }))
	cabinet := events[0].Cabinet()
	ignore := func(int, *storedEvent) bool { return true }
	for name, p := range map[string]drawerPage{
		"cut":             {Events: data[:len(data)-3], Until: 3},
		"a bit flipped":   {Events: append(append(slices.Clone(data[:20]), data[20]^1), data[21:]...), Until: 3},
		"too long":        {Events: append(slices.Clone(data), 0), Until: 3},
		"too few events":  {Events: data, Until: 4},
		"unknown version": {Events: append([]byte{99}, data[1:]...), Until: 3},
		"empty":           {Until: 3},
	} {
		assert.ErrorIs(t, p.decodeEvents(cabinet, ignore), errPage, name)
	}
}

func TestAPageWithADamagedMember_IsRefused(t *testing.T) {
	events := repositorytest.Events(3, repositorytest.NewActor())
	it := &intent{ID: "intent", Saved: 5}
	sound := *pagesOf(it, "object", &drawerPart{Drawer: "drawer", Slot: 2}, numberedEvents(events, 7, func() domain.Sequence { return 0 }))[0]
	cabinet := events[0].Cabinet()
	ignore := func(int, *storedEvent) bool { return true }
	require.NoError(t, sound.decodeEvents(cabinet, ignore))
	for name, change := range map[string]func(*drawerPage){
		"another first number": func(p *drawerPage) { p.FirstSequence-- },
		"another slot":         func(p *drawerPage) { p.Slot++; p.Until++ },
		"another drawer":       func(p *drawerPage) { p.PartitionKey = "other" },
		"another time":         func(p *drawerPage) { p.Saved++ },
		"other payloads":       func(p *drawerPage) { p.Payloads = "other" },
	} {
		p := sound
		change(&p)
		assert.ErrorIs(t, p.decodeEvents(cabinet, ignore), errPage, name)
	}
	old := sound
	old.Sum = 0 // older versions store no checksum
	require.NoError(t, old.decodeEvents(cabinet, ignore))
}

func TestAFilter_HasFewFalsePositives(t *testing.T) {
	const n = 10_000
	counting := func(from, i int) (id domain.EventID) { // consecutive ids are the hardest case for a hash function
		for b := 15; b >= 12; b-- {
			id[b] = byte((from + i) >> (8 * (15 - b)))
		}
		return id
	}
	f := newFilter(n)
	for i := range n {
		f.add(counting(0, i))
	}
	for i := range n {
		require.True(t, f.mayHold(counting(0, i)))
	}
	wrong := 0
	for i := range 1_000_000 {
		if f.mayHold(counting(1<<24, i)) {
			wrong++
		}
	}
	assert.LessOrEqual(t, wrong, 2, "of a million foreign ids")
	assert.Equal(t, 80_000, len(f), "eight bytes an event")
	assert.False(t, filter(nil).mayHold(counting(0, 1)), "an empty drawer holds nothing")
}

package objects

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// randomRow returns a row with random fields, which may be empty or equal to fields of other rows.
func randomRow(rng *rand.Rand) domain.ObjectRow {
	texts := []string{"", "0", "00", "a", "A", "ab", "null", "!", "~", "é", "日本"}
	text := func() string { return texts[rng.IntN(len(texts))] }
	at := func() time.Time {
		return []time.Time{{}, time.Unix(-5, 0).UTC(), time.Unix(0, 0).UTC(), time.Unix(1, 123456700).UTC(), time.Unix(1<<33, 999999900).UTC()}[rng.IntN(5)]
	}
	sequencer := func() domain.Sequencer {
		switch rng.IntN(3) {
		case 0:
			return domain.Sequencer{}
		case 1:
			return must(domain.ParseSequencer(domain.HexSequencer, []string{"0", "00", "a", "A0", "0055AED6DCD90281E4", strings.Repeat("F", 64)}[rng.IntN(6)]))
		default:
			return must(domain.ParseSequencer(domain.OpaqueSequencer, []string{"0", "00", "a", "~", "é", strings.Repeat("z", 64)}[rng.IntN(6)]))
		}
	}
	r := domain.ObjectRow{
		ObjectEvent: domain.ObjectEvent{
			Version: must(domain.ParseVersionID(text())), Type: domain.ObjectEventType(1 + rng.IntN(2)), Marker: rng.IntN(2) == 0,
			Sequencer: sequencer(), Time: at(),
			ObjectFacts: domain.ObjectFacts{
				ETag: text(), SHA256: text(), StorageClass: text(), ArchiveStatus: text(), LastModified: at(),
				Reason: domain.ObjectReason(text()), IngestID: text(), Attributes: text(), Patches: text(),
			},
		},
		Duplicates: rng.Int64N(3), Reordered: rng.Int64N(3), WriteID: text(),
	}
	if rng.IntN(2) == 0 {
		size := []int64{0, 1<<53 + 1, math.MaxInt64}[rng.IntN(3)]
		r.Size = &size
	}
	if r.Sequencer.IsNull() {
		r.Base, r.Rank, r.Number = sequencer(), domain.PlacementRank(1+rng.IntN(2)), 1+rng.Int64N(300)
		r.Carrier = domain.Carrier{Message: "m" + text(), Index: rng.IntN(3)}
		if r.Rank == domain.OverRow {
			r.After = at()
		}
	}
	return r
}

func decodes[T any](t *testing.T, doc any, into *T) *T {
	t.Helper()
	s := New(must(client.Connect(client.Connection{Endpoint: "https://localhost", Key: "a2V5"})), Options{})
	require.NoError(t, s.client.Begin("test").Decode(client.Encode(doc), "partition", into))
	return into
}

func TestARowDocument_KeepsAllMembers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		r := randomRow(rng)
		d := newRowDoc("partition", "key", &r)
		require.LessOrEqual(t, len(d.ID), 255)
		require.Equal(t, r, must(decodes(t, d, &rowDoc{}).toRow()))
		require.Equal(t, r, must(decodes(t, newHeadDoc("partition", "key", &r), &rowDoc{}).toRow()))
	}
}

func TestAnObjectDocument_KeepsAllMembers(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		current, floor, forgotten := randomRow(rng), randomRow(rng), randomRow(rng)
		o := domain.Object{
			Name: must(domain.ParseObjectName("bucket", "a b/é\x00")), Rows: []domain.ObjectRow{randomRow(rng), randomRow(rng)},
			Events: 5, Duplicates: 4, Generated: 3, Doubt: rng.IntN(2) == 0, Spilled: 2, SpilledGenerated: 1, SpilledTo: randomRow(rng).Time,
			SpilledVersions: []domain.VersionID{current.Version, floor.Version}, Writes: []string{"a", "b"}, Floor: floor.Order(),
			Forgotten: forgotten.Order(), ForgottenTo: forgotten.Time, ForgottenRows: rng.Int64N(3),
		}
		if rng.IntN(2) == 0 {
			o.Current = &current
		}
		require.Equal(t, o, must(decodes(t, newObjectDoc("partition", &o, nil), &objectDoc{}).object()))
	}
}

// Older versions stored the order of a row without the member after. Such an order can still be read.
func TestAnOrderWithoutAfterIsRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		r := randomRow(rng)
		r.After = time.Time{}
		d := newOrderDoc(r.Order())
		d.After = ""
		var p documentParser
		require.Equal(t, r.Order(), p.parseOrder(d))
		require.NoError(t, p.err)
	}
}

// Cosmos sorts rows by orderText, so the texts sort as the orders do.
func TestTheTextOfAnOrderSortsAsTheOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 20_000 {
		a, b := randomRow(rng), randomRow(rng)
		want, got := a.Order().Compare(b.Order()), cmp.Compare(orderText(a.Order()), orderText(b.Order()))
		require.Equal(t, want, got, "%+v and %+v", a.Order(), b.Order())
	}
}

func TestIdsSortAsKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	key := func() string {
		text := make([]byte, rng.IntN(6))
		for i := range text {
			text[i] = byte(rng.IntN(3) * 127)
		}
		return strings.Repeat("k", rng.IntN(2)*(plainKey-3)) + string(text)
	}
	for range 50_000 {
		a, b := key(), key()
		idA, idB := objectID(a), objectID(b)
		require.LessOrEqual(t, len(idA), 1023)
		if len(a) <= plainKey || len(b) <= plainKey || a[:plainKey] != b[:plainKey] {
			require.Equal(t, cmp.Compare(a, b), cmp.Compare(idA, idB), "%q and %q", a, b)
		}
		from, to := idRange(b)
		isWithin := idA >= from && (to == "" || idA < to)
		if a != "" && len(b) <= plainKey {
			require.Equal(t, strings.HasPrefix(a, b), isWithin, "%q with prefix %q", a, b)
		}
	}
	require.Less(t, max(rowPrefix, headPrefix), firstID, "other documents come first")
}

func TestKeysAreSpreadOverTheShards(t *testing.T) {
	counts := make([]int, defaultShards)
	for i := range 16_000 {
		counts[shardOf(strings.Repeat("k", i%7)+string(rune('a'+i%26))+time.Unix(int64(i), 0).UTC().Format(time.RFC3339), defaultShards)]++
	}
	require.Greater(t, slices.Min(counts), 800)
	require.Less(t, slices.Max(counts), 1200)
}

package cosmos

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func testSpan(trace, span byte) domain.TraceContext {
	return domain.TraceContext{TraceID: domain.TraceID{trace}, SpanID: domain.SpanID{span}, Sampled: true}
}

func TestSaveRuns_AreDecodedAsEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 9000).Draw(t, "from")
		var runs []saveRun
		at := from
		for range rapid.IntRange(0, 20).Draw(t, "runs") {
			at += rapid.IntRange(0, 3).Draw(t, "gap")
			end := at + rapid.IntRange(1, 300).Draw(t, "slots")
			runs = append(runs, saveRun{at, end, testSpan(byte(rapid.IntRange(1, 3).Draw(t, "trace")), byte(rapid.IntRange(1, 9).Draw(t, "span")))})
			at = end
		}
		data := encodeSaves(runs, from)
		assert.Equal(t, runs, decodeSaves(data, from))
		assert.Empty(t, clipSaves(runs, at, at+1))
		assert.Equal(t, runs, clipSaves(runs, from, at))
	})
}

func FuzzDecodeSaves(f *testing.F) {
	f.Add([]byte(encodeSaves([]saveRun{{1, 2, testSpan(1, 1)}, {5, 7, testSpan(1, 2)}}, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := 0
		for _, r := range decodeSaves(data, 0) {
			if r.from < last || r.until <= r.from || r.until > maxSlots || r.span.IsZero() {
				t.Fatalf("run %v behind slot %d", r, last)
			}
			last = r.until
		}
		cabinetState{Tail: packed{1}, Fill: 10, Saves: data}.tailSaves()
	})
}

func TestTailSaves_OfAnotherTailAreIgnored(t *testing.T) {
	c := cabinetState{Tail: packed{1}, Ordinal: 3, Paged: 5, Fill: 9}
	runs := []saveRun{{5, 6, testSpan(1, 1)}, {7, 9, testSpan(1, 2)}}
	c.Saves = c.encodeTailSaves(runs)
	assert.Equal(t, runs, c.tailSaves())

	other := c
	other.Ordinal = 4
	assert.Empty(t, other.tailSaves(), "an older version has begun another drawer")
	other = c
	other.Paged = 8
	assert.Equal(t, []saveRun{{8, 9, testSpan(1, 2)}}, other.tailSaves(), "an older version has flushed a part")
	other = c
	other.Fill = 20
	assert.Equal(t, runs, other.tailSaves(), "an older version has appended")
	other = c
	other.Tail = nil
	assert.Empty(t, other.tailSaves(), "an older version has flushed all")
	for n := range c.Saves {
		other.Tail, other.Saves = c.Tail, c.Saves[:n]
		other.tailSaves() // must not panic
	}
}

func TestSpan_OfABundleIsOmittedUnlessSampledAndIntact(t *testing.T) {
	assert.Equal(t, testSpan(1, 2), encodeSpan(testSpan(1, 2)).decodeSpan())
	assert.Zero(t, packed{1, 2, 3}.decodeSpan())
	assert.Zero(t, make(packed, 24).decodeSpan())
	assert.Nil(t, encodeSpan(domain.TraceContext{TraceID: domain.TraceID{1}, SpanID: domain.SpanID{1}}), "not sampled")
}

// storedTexts makes Saves, a Peek and a Dequeue in the span c. It returns the stored documents without
// ids and times, and how often each occurs.
func storedTexts(t *testing.T, storeTraces bool, c domain.TraceContext) map[string]int {
	t.Helper()
	r := newRig(t, embedded.Options{})
	node := r.node(Options{TailEvents: 4, StoreTraces: storeTraces}, false)
	ctx := domain.WithTraceContext(context.Background(), c)
	actor := repositorytest.NewActor()
	for _, n := range []int{1, 2, 3, 40} {
		_, err := node.Save(ctx, actor, repositorytest.Events(n, actor))
		require.NoError(t, err)
	}
	b, err := repositorytest.Peek(ctx, r.stores(node), actor, allGroups, domain.BundleID{}, func(b *domain.Bundle) { b.Peeked = c })
	require.NoError(t, err)
	_, err = node.Acknowledge(ctx, actor, b.ID)
	require.NoError(t, err)
	v := &upgradedStore{&keeper{T: t, rig: r, node: node}}
	members := make(map[string]int)
	for _, doc := range v.readItems() {
		countMembers(members, doc)
	}
	return members
}

func countMembers(members map[string]int, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			members[name]++
			countMembers(members, inner)
		}
	case []any:
		for _, inner := range value {
			countMembers(members, inner)
		}
	}
}

func TestTraces_AreStoredOnlyIfEnabled(t *testing.T) {
	without := storedTexts(t, false, testSpan(1, 1))
	assert.Zero(t, without["saves"])
	assert.Zero(t, without["peeked"])
	assert.Equal(t, without, storedTexts(t, true, domain.TraceContext{}), "nothing is stored of requests without a span")
	with := storedTexts(t, true, testSpan(1, 1))
	assert.Positive(t, with["saves"])
	assert.Positive(t, with["peeked"])
	delete(with, "saves")
	delete(with, "peeked")
	assert.Equal(t, without, with)
	text, err := json.Marshal(&drawerPage{})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "saves")
}

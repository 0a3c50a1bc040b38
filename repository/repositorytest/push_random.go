package repositorytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// RandomStreams makes the same random appends and reads in an implementation and in an oracle, and
// requires the same results.
func RandomStreams(t *testing.T, oracle, open func(t *testing.T, o PushOptions) PushStores) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Now().UTC().Truncate(time.Second)
		o := PushOptions{Clock: func() time.Time { return now }}
		want, got := oracle(t, o), open(t, o)
		stream := NewStream()
		ctx := t.Context()
		for range rapid.IntRange(1, 40).Draw(rt, "operations") {
			switch rapid.IntRange(0, 4).Draw(rt, "operation") {
			case 0, 1:
				messages := Messages(rapid.IntRange(1, 12).Draw(rt, "messages"))
				ids := make(map[string]bool)
				for i := range messages {
					m := &messages[i]
					m.Priority = rapid.SampledFrom([]int{0, 0, 0, 9}).Draw(rt, "priority")
					m.Payload = fmt.Appendf(nil, "%0*d", rapid.SampledFrom([]int{1, 300, 3000, 20_000}).Draw(rt, "bytes"), rapid.IntRange(0, 1).Draw(rt, "content"))
					if id := fmt.Sprint(rapid.IntRange(0, 30).Draw(rt, "id")); !ids[id] && id != "0" {
						m.ID, ids[id] = id, true
					}
				}
				a, err := want.Streams.Append(ctx, stream, messages)
				require.NoError(rt, err)
				b, err := got.Streams.Append(ctx, stream, messages)
				require.NoError(rt, err)
				for i := range a {
					require.Equal(rt, a[i].Outcome, b[i].Outcome)
					require.Equal(rt, a[i].Position.EntryID, b[i].Position.EntryID)
				}
			case 2:
				now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours"))*time.Hour + time.Minute)
			case 3:
				a, err := want.Streams.End(ctx, stream)
				require.NoError(rt, err)
				b, err := got.Streams.End(ctx, stream)
				require.NoError(rt, err)
				require.Len(rt, b.Positions, len(a.Positions))
				for i := range a.Positions {
					require.Equal(rt, a.Positions[i].EntryID, b.Positions[i].EntryID)
				}
			case 4:
				from := domain.Position{EntryID: domain.EntryID{Priority: rapid.SampledFrom([]int{0, 9}).Draw(rt, "priority"), Number: int64(rapid.IntRange(0, 60).Draw(rt, "from"))}}
				sameEntries(rt, want, got, stream, from)
			}
		}
		sameEntries(rt, want, got, stream, domain.Position{})
	})
}

func sameEntries(t *rapid.T, want, got PushStores, stream domain.StreamName, from domain.Position) {
	a, err := ReadAll(t.Context(), want, stream, from)
	require.NoError(t, err)
	b, err := ReadAll(t.Context(), got, stream, from)
	require.NoError(t, err)
	require.Len(t, b, len(a))
	for i := range a {
		require.Equal(t, a[i].Position.EntryID, b[i].Position.EntryID)
		require.Equal(t, a[i].ID, b[i].ID)
		require.Equal(t, a[i].Digest(), b[i].Digest())
		require.Equal(t, a[i].Published, b[i].Published)
	}
}

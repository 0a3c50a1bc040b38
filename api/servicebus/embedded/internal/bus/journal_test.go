package bus

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// TestJournal_ReadsLikeAMap runs each step of a commit separately. Writes must be visible before, during and after the
// commit.
func TestJournal_ReadsLikeAMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := newJournal(disk.NewMemory())
		model, durable := map[string]string{}, map[string]string{}
		var saving *generation
		var whenTaken map[string]string
		key := rapid.StringMatching(`[a-c][a-d]`)
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			k := key.Draw(r, "key")
			switch rapid.IntRange(0, 6).Draw(r, "step") {
			case 0, 1:
				j.putKey([]byte(k), fmt.Append(nil, i))
				model[k] = fmt.Sprint(i)
			case 2:
				j.removeKey([]byte(k))
				delete(model, k)
			case 3:
				if saving == nil {
					saving, whenTaken = j.beginCommit(), maps.Clone(model)
				}
			case 4:
				if saving != nil {
					require.NoError(r, j.saveGeneration(saving)) // now both the store and the journal contain the writes
				}
			case 5:
				if saving != nil {
					require.NoError(r, j.saveGeneration(saving))
					j.endCommit(saving)
					saving, durable = nil, whenTaken
				}
			}
			value, there := model[k]
			require.Equal(r, there, j.getValue([]byte(k)) != nil)
			require.Equal(r, value, string(j.getValue([]byte(k))))
			if j.pendingGeneration([]byte(k)) == nil {
				require.Equal(r, durable[k], value, "what waits for nothing is durable")
			}
			from, to := key.Draw(r, "from"), key.Draw(r, "to")
			limit := rapid.IntRange(1, 12).Draw(r, "most")
			var got, want []string
			j.scanRange([]byte(from), []byte(to), func(k, v []byte) bool {
				got = append(got, string(k)+"="+string(v))
				return len(got) < limit
			})
			for _, k := range slices.Sorted(maps.Keys(model)) {
				if k >= from && k < to && len(want) < limit {
					want = append(want, k+"="+model[k])
				}
			}
			require.Equal(r, want, got)
		}
		require.NoError(r, j.failure)
	})
}

func TestReplyOnceCommitted_WaitsForPendingWrites(t *testing.T) {
	j := newJournal(disk.NewMemory())
	called := 0
	count := func(error) { called++ }
	require.False(t, j.replyOnceCommitted(count), "nothing is on its way")
	j.putKey([]byte("a"), []byte("1"))
	require.True(t, j.replyOnceCommitted(count))
	g := j.beginCommit()
	require.Nil(t, j.beginCommit())
	require.True(t, j.replyOnceCommitted(count), "the commit under way counts too")
	require.Len(t, g.replies, 2)
	j.putKey([]byte("b"), []byte("1"))
	require.True(t, j.replyOnceCommitted(count))
	require.Len(t, g.replies, 2, "what was written later is committed later")
	require.NoError(t, j.saveGeneration(g))
	j.endCommit(g)
	require.Zero(t, called)
}

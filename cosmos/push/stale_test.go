package push

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A reader that sees a head and not yet its newest page skips no entry.
func TestAPageThatIsNotVisibleYet_HasNotExpired(t *testing.T) {
	var reads atomic.Int64
	var old atomic.Bool
	r := newRig(t, embedded.Options{Stale: func() int {
		if !old.Load() {
			return 0
		}
		if n := reads.Add(1); n == 2 || n == 3 { // the first one is that of the head
			return 1 // before the page was created
		}
		return 0
	}})
	stream := repositorytest.NewStream()
	writer, reader := r.node(Options{}), r.node(Options{})
	var all []domain.Message
	for range 30 {
		m := repositorytest.Messages(1)
		m[0].Payload = make([]byte, 600)
		_, err := writer.Append(t.Context(), stream, m)
		require.NoError(t, err)
		all = append(all, m...)
		if h := writer.appenders.newestHead(stream); h.tailOf(0).Page > 0 {
			break
		}
	}
	require.Positive(t, writer.appenders.newestHead(stream).tailOf(0).Page, "the last append has created a page")
	old.Store(true)
	found, err := reader.Read(t.Context(), stream, domain.Position{}, 100)
	require.NoError(t, err)
	require.Zero(t, found.Start.Number)
	require.Len(t, found.Entries, len(all))
	require.Greater(t, reads.Load(), int64(3))
}

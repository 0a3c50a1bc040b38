package delivery

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// This is rule P16.
func TestAWindow_ForgetsTheLeastRecentlyUsedParts(t *testing.T) {
	stream, err := domain.ParseTopic("t")
	require.NoError(t, err)
	w := newWindow(100_000)
	id := func(n int64) domain.EntryID { return domain.EntryID{Priority: 3, Number: n} }
	for n := range int64(10_000) {
		w.putEntries(stream, []repository.Entry{{
			Message: domain.Message{Payload: make([]byte, 700)}, Position: domain.Position{EntryID: id(n)},
		}})
		require.NotNil(t, w.findEntry(stream, id(n)), "what was put is there")
		require.LessOrEqual(t, w.bytes, w.limit+partEntries*1000+partBytes)
		if n >= partEntries {
			require.NotNil(t, w.findEntry(stream, id(n/partEntries*partEntries)))
		}
	}
	require.Nil(t, w.findEntry(stream, id(0)))
	require.Less(t, len(w.parts), 5)
	require.Equal(t, len(w.parts), w.recent.Len())
}

package push

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestASweep_RemovesPayloadsOfExpiredEntries(t *testing.T) {
	now := &clock{time.Now()}
	r := newRig(t, embedded.Options{Clock: func() time.Time { return now.now }})
	node := r.node(Options{Clock: func() time.Time { return now.now }})
	stream := repositorytest.NewStream()
	m := repositorytest.Messages(1)
	m[0].Payload = make([]byte, 100_000)
	_, err := node.Append(t.Context(), stream, m)
	require.NoError(t, err)
	found, err := node.Read(t.Context(), stream, domain.Position{}, 1)
	require.NoError(t, err)
	require.Len(t, found.Entries, 1)
	at := found.Entries[0].PayloadAt
	require.False(t, at.IsZero())

	isThere := func() bool {
		require.NoError(t, node.Sweep(t.Context()))
		body, err := r.content.Open(t.Context(), at)
		if err == nil {
			require.NoError(t, body.Close())
		}
		return err == nil
	}
	for range 21 { // the payload exists as long as its entry can be read
		require.True(t, isThere())
		now.now = now.now.Add(24 * time.Hour)
		all, err := repositorytest.ReadAll(t.Context(), r.stores(node), stream, domain.Position{})
		require.NoError(t, err)
		require.LessOrEqual(t, len(all), 1)
	}
	now.now = now.now.Add(4 * 24 * time.Hour)
	require.False(t, isThere())
	all, err := repositorytest.ReadAll(t.Context(), r.stores(node), stream, domain.Position{})
	require.NoError(t, err)
	require.Empty(t, all)
}

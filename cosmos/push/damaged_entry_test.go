package push

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func TestADamagedEntryOfAShard_HidesNoOther(t *testing.T) {
	l := newLife(t, newRig(t, embedded.Options{}), 2, true, Options{})
	node := l.startStore(-1)
	require.NoError(t, l.createCursor(node))
	shard := repository.ShardOf(l.id)
	for _, id := range []string{"0", "zzz"} { // "0" sorts before the valid entry, and "zzz" after it
		doc := &entryDoc{ID: id, PartitionKey: shardKey(shard), Kind: entryDocument.Name, Stream: "no stream"}
		_, err := node.client.Begin("test").Put(t.Context(), node.cursors, doc.PartitionKey, doc.ID, "", doc)
		require.NoError(t, err)
	}
	node.overwrite(t, shardKey(shard), "0", map[string]any{"kind": "entry", "stream": 7})
	entries, _, err := node.Cursors(t.Context(), shard)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
	require.ErrorContains(t, err, "document ")
	require.Len(t, entries, 1)
	require.Equal(t, l.id, entries[0].Cursor)
	require.Equal(t, l.stream, entries[0].Stream)
}

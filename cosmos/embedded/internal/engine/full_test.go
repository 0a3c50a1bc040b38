package engine

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// TestLogicalPartition_Holds20GB changes the stored size of a partition to almost 20 GB, so that the next writes reach
// the limit.
func TestLogicalPartition_Holds20GB(t *testing.T) {
	e, c := testContainer(t, defaultPolicy)
	const pk = Partition(`["p"]`)
	op := func(kind Kind, text string) Op {
		doc, err := c.ParseDocument([]byte(text), false)
		require.NoError(t, err)
		return Op{Kind: kind, ID: doc.ID, Doc: doc}
	}
	write := func(ops ...Op) error {
		_, err := e.Write(t.Context(), c, pk, ops, Consistency{})
		return err
	}
	full := func(err error) {
		t.Helper()
		var refused *Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, http.StatusForbidden, refused.Status)
		require.Equal(t, 1014, refused.SubStatus)
	}
	require.NoError(t, write(op(Create, `{"id":"a","pk":"p","text":"a little longer than the next one"}`)))
	require.NoError(t, e.store.Update(t.Context(), func(tx disk.Tx) error {
		u := readUsage(tx.Get(partitionKey(c.number, pk)))
		u.bytes = maxPartitionBytes - 100
		tx.Put(partitionKey(c.number, pk), u.encodeUsage())
		return nil
	}))
	full(write(op(Create, `{"id":"b","pk":"p"}`)))
	full(write(op(Upsert, `{"id":"b","pk":"p"}`)))
	full(write(op(Replace, `{"id":"a","pk":"p","text":"`+strings.Repeat("longer ", 30)+`"}`)))
	full(write(op(Replace, `{"id":"a","pk":"p","text":"shorter"}`), op(Create, `{"id":"b","pk":"p"}`)))
	b, _, err := e.Read(c, pk, "b", Consistency{})
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, b.Status)
	require.NoError(t, write(op(Replace, `{"id":"a","pk":"p","text":"shorter"}`)), "what makes room is done")
	other, err := c.ParseDocument([]byte(`{"id":"a","pk":"q"}`), false)
	require.NoError(t, err)
	_, err = e.Write(t.Context(), c, other.Partition, []Op{{Kind: Create, Doc: other}}, Consistency{})
	require.NoError(t, err, "another partition has room")
	require.NoError(t, write(Op{Kind: Delete, ID: "a"}))
}

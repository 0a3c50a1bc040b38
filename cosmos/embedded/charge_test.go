package embedded_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// sessionOptions selects Session consistency, because the published charges of point reads are for this level.
var sessionOptions = embedded.Options{Consistency: "Session"}

// docWithTerms returns a document with n indexed values, including the partition key. The index also has id and _ts, so
// the document has n+2 terms.
func docWithTerms(n int, changed ...int) []byte {
	var b strings.Builder
	b.WriteString(`{"id":"a","pk":"p"`)
	for i := range n - 1 {
		v := i
		if i < len(changed) {
			v = changed[i]
		}
		fmt.Fprintf(&b, `,"t%d":%d`, i, v)
	}
	return []byte(b.String() + "}")
}

func TestCharges_ArePublishedOnes(t *testing.T) {
	ctx := t.Context()
	_, c := openEngine(t, sessionOptions)
	// Published example: creating 1 KB with 10 terms. Two of the terms are id and _ts.
	created, err := c.CreateItem(ctx, pk, docWithTerms(8), nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(7.0), created.RequestCharge)
	read, err := c.ReadItem(ctx, pk, "a", nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(1.0), read.RequestCharge)
	replaced, err := c.ReplaceItem(ctx, pk, "a", docWithTerms(8, 77, 78), nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(10.8), replaced.RequestCharge, "two modified terms")
	patched, err := c.PatchItem(ctx, pk, "a", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/t0", 1); p.AppendSet("/t1", 2) }), nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(11.6), patched.RequestCharge, "two modified terms, two operations")
	deleted, err := c.DeleteItem(ctx, pk, "a", nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(7.0), deleted.RequestCharge)

	_, c = openEngine(t, sessionOptions, func(p *azcosmos.ContainerProperties) {
		onlySlot(p)
		p.IndexingPolicy.IncludedPaths = nil
	})
	created, err = c.CreateItem(ctx, pk, docWithTerms(8), nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(5.4), created.RequestCharge, "nothing indexed but id and _ts")
}

func TestQuery_IsChargedForLoadedDocuments(t *testing.T) {
	for _, tc := range []struct {
		name        string
		pessimistic bool
		query       string
		want        float32
	}{
		{"one indexed predicate, one row of 7 KB", false, "SELECT * FROM c WHERE c.slot = 1", 2.971},
		{"count by index", false, "SELECT VALUE COUNT(1) FROM c WHERE c.slot > 0", 2.9},
		{"no index for the predicate", false, "SELECT * FROM c WHERE c.other = 1", 2.2 + 10*0.0711},
		{"pessimistic: a point read for each", true, "SELECT * FROM c WHERE c.slot = 1", 2.9 + 1.28},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := sessionOptions
			o.Pessimistic = tc.pessimistic
			_, c := openEngine(t, o, onlySlot)
			for i := range 10 {
				createDocs(t, c, fmt.Appendf(nil, `{"id":"%d","pk":"p","slot":%d,"data":%q}`, i, i, strings.Repeat("x", 6900)))
			}
			page, err := c.NewQueryItemsPager(tc.query, pk, nil).NextPage(t.Context())
			require.NoError(t, err)
			require.InDelta(t, tc.want, page.RequestCharge, 0.01)
		})
	}
}

func TestFailedRequests_AreCharged(t *testing.T) {
	engine, c := openEngine(t, sessionOptions)
	createDocs(t, c, newDoc("a", 1))
	cost := func(do func()) float64 {
		before := engine.RequestUnits()
		do()
		return engine.RequestUnits() - before
	}
	require.InDelta(t, 1.0, cost(func() { _, _ = c.ReadItem(t.Context(), pk, "b", nil) }), 1e-9)
	require.InDelta(t, 1.0, cost(func() { _, _ = c.CreateItem(t.Context(), pk, newDoc("a", 1), nil) }), 1e-9)
	require.InDelta(t, 5.8+1.0, cost(func() { // a failed batch is charged for all operations up to the one that failed
		batch := c.NewTransactionalBatch(pk)
		batch.CreateItem(newDoc("b", 1), nil)
		batch.CreateItem(newDoc("a", 1), nil)
		batch.CreateItem(newDoc("c", 1), nil)
		_, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
		require.NoError(t, err)
	}), 1e-9)

	_, c = openEngine(t, embedded.Options{Consistency: "Strong"})
	createDocs(t, c, newDoc("a", 1))
	read, err := c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	require.EqualValues(t, float32(2.0), read.RequestCharge, "a strong read costs twice")
}

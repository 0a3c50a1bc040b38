package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContainer(t testing.TB, policy string) (*Engine, *Container) {
	t.Helper()
	e, err := Open(disk.NewMemory(), Options{Clock: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	require.NoError(t, err)
	_, err = e.CreateDatabase(t.Context(), []byte(`{"id":"db"}`), Throughput{})
	require.NoError(t, err)
	c, err := e.CreateContainer(t.Context(), "db", []byte(`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":`+policy+`}`), Throughput{})
	require.NoError(t, err)
	return e, c
}

// FuzzPatch applies arbitrary patches to a document. Each patch must either fail or leave a valid document with the
// same id and partition key.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		`{"operations":[{"op":"set","path":"/a/b","value":1}]}`,
		`{"operations":[{"op":"add","path":"/list/-","value":{"x":[1]}},{"op":"remove","path":"/list/0"}]}`,
		`{"condition":"from c where c.n > 1","operations":[{"op":"incr","path":"/n","value":-1.5}]}`,
		`{"operations":[{"op":"replace","path":"/a~1b/~0","value":null}]}`,
		`{"operations":[{"op":"remove","path":"/a"},{"op":"remove","path":"/n"},{"op":"remove","path":"/list"}]}`,
		`{"operations":[{"op":"move","path":"/a"}]}`, `{"operations":[]}`, `[]`, `{"operations":[{"op":"set","path":"/pk/x","value":1}]}`,
	} {
		f.Add([]byte(s))
	}
	_, c := testContainer(f, defaultPolicy)
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := c.ParsePatch(t.Context(), body)
		if err != nil {
			return
		}
		doc := []byte(`{"a":{"b":1},"id":"x","list":[1,[2],{"z":3}],"n":5,"pk":"p"}`)
		patched, err := p.applyAll(doc, c)
		if err != nil {
			return
		}
		compact, err := rawjson.Compact(nil, patched)
		require.NoError(t, err, "%s", patched)
		require.Equal(t, string(compact), string(patched))
		id, _, err := readIDAndTTL(patched)
		require.NoError(t, err)
		require.Equal(t, "x", id)
		pk, err := c.extractPartition(patched)
		require.NoError(t, err)
		require.Equal(t, Partition(`["p"]`), pk)
		_ = c.policy.countTerms(patched)
	})
}

// FuzzContinuation passes arbitrary continuation tokens to a query, which must not panic.
func FuzzContinuation(f *testing.F) {
	e, c := testContainer(f, defaultPolicy)
	doc, err := c.ParseDocument([]byte(`{"id":"x","pk":"p","n":1}`), false)
	require.NoError(f, err)
	_, err = e.Write(f.Context(), c, `["p"]`, []Op{{Kind: Create, Doc: doc}}, Consistency{})
	require.NoError(f, err)
	q, err := query.Parse(f.Context(), "SELECT * FROM c ORDER BY c.n", nil)
	require.NoError(f, err)
	req := QueryRequest{Query: q, Text: "text", Partition: `["p"]`, Scoped: true, MaxItems: 1}
	for _, p := range []pagePosition{
		{seq: 1, ordered: true, keys: []query.Value{{}}},
		{seq: 1 << 40, ordered: true, inOrder: true, written: 3, keys: []query.Value{{Kind: query.String, Text: []byte("é")}}},
		{seq: 2, given: 5, ordered: true, keys: []query.Value{{Kind: query.Object, Text: []byte("{}")}}},
	} {
		token := p.encodeToken(req)
		req.Continuation = token
		var back pagePosition
		require.NoError(f, back.parseToken(req))
		require.Equal(f, token, back.encodeToken(req), "a token says all of a position")
		f.Add(token)
	}
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		req := req
		req.Continuation = token
		_, _ = e.Query(t.Context(), c, req)
	})
}

func TestPolicy_CountsIncludedLeaves(t *testing.T) {
	const doc = `{"id":"x","pk":"p","a":{"b":1,"c":[1,2,{"d":3}]},"e":null,"f":{},"g h":true}`
	for _, tc := range []struct {
		policy string
		want   int
	}{
		{`{"indexingMode":"consistent"}`, 2 + 7}, // the terms are pk, b, 1, 2, d, e and "g h"
		{`{"indexingMode":"none","automatic":false}`, 0},
		{`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"}]}`, 2 + 3},
		{`{"includedPaths":[{"path":"/a/b/?"}],"excludedPaths":[{"path":"/*"}]}`, 2 + 1},
		{`{"includedPaths":[{"path":"/a/c/[]/?"}],"excludedPaths":[{"path":"/*"}]}`, 2 + 2},
		{`{"includedPaths":[{"path":"/a/c/[]/d/?"}],"excludedPaths":[{"path":"/*"}]}`, 2 + 1},
		{`{"includedPaths":[{"path":"/a/*"}],"excludedPaths":[{"path":"/*"},{"path":"/a/c/*"}]}`, 2 + 1},
		{`{"includedPaths":[{"path":"/\"g h\"/?"}],"excludedPaths":[{"path":"/*"}]}`, 2 + 1},
		{`{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/id/?"}]}`, 2 + 7},
	} {
		_, c := testContainer(t, tc.policy)
		require.Equal(t, tc.want, c.policy.countTerms([]byte(doc)), tc.policy)
	}
	for _, wrong := range []string{
		`{"includedPaths":[{"path":"/a/?"}]}`, `{"includedPaths":[{"path":"/*"},{"path":"/a"}]}`,
		`{"indexingMode":"eager"}`, `{"includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/a/?"}]}`,
	} {
		_, err := parsePolicy([]byte(wrong))
		require.Error(t, err, wrong)
	}
}

func TestChangedTerms_CountsRemovedAndAddedTerms(t *testing.T) {
	_, c := testContainer(t, defaultPolicy)
	for _, tc := range []struct {
		before, now string
		want        int
	}{
		{`{"id":"x","a":1,"b":2}`, `{"id":"x","b":2,"a":1}`, 0},
		{`{"id":"x","a":1,"b":2}`, `{"id":"x","a":1,"b":3}`, 2},
		{`{"id":"x","a":1}`, `{"id":"x","a":1,"b":3}`, 1},
		{`{"id":"x","a":[1,1,2]}`, `{"id":"x","a":[1,2]}`, 1},
		{`{"id":"x","a":1}`, `{"id":"x","b":1}`, 2},
	} {
		require.Equal(t, tc.want, c.policy.changedTerms([]byte(tc.before), []byte(tc.now)), tc)
	}
}

func TestCharges_FollowTheTable(t *testing.T) {
	for _, tc := range []struct {
		size int
		want Charge
	}{{1, 1_000_000}, {1024, 1_000_000}, {2048, 1_040_000}, {1536, 1_020_000}, {100 << 10, 7_679_375}, {1 << 20, 145_900_000}, {2 << 20, 291_800_000}} {
		require.Equal(t, tc.want, readCharge(tc.size), tc.size)
	}
	require.EqualValues(t, 5_000_000, writeCharge(10), "at least 5 RU")
	require.EqualValues(t, 1_250_000_000, writeCharge(2<<20))
	require.Equal(t, "10.8", Charge(10_800_000).String())
}

// TestDelete_RemovesAllKeys makes random writes and deletes all documents. The store must then have the same keys as
// before.
func TestDelete_RemovesAllKeys(t *testing.T) {
	e, c := testContainer(t, defaultPolicy)
	count := func() (n int) {
		require.NoError(t, e.store.View(func(r disk.Reader) error {
			for _, kind := range []byte("IDBLU") {
				prefix := containerPrefix(kind, c.number)
				r.Scan(prefix, endOfPrefix(prefix), func(_, _ []byte) bool { n++; return true })
			}
			return nil
		}))
		return n
	}
	write := func(op Op) Result {
		w, err := e.Write(t.Context(), c, `["p"]`, []Op{op}, Consistency{})
		require.NoError(t, err)
		return w.Results[0]
	}
	source := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		id := fmt.Sprint(source.IntN(10))
		doc, err := c.ParseDocument(fmt.Appendf(nil, `{"id":%q,"pk":"p","data":%q}`, id, strings.Repeat("x", source.IntN(3)*3000)), false)
		require.NoError(t, err)
		switch source.IntN(4) {
		case 0:
			write(Op{Kind: Delete, ID: id})
		case 1:
			p, err := c.ParsePatch(t.Context(), []byte(`{"operations":[{"op":"set","path":"/data","value":"short"}]}`))
			require.NoError(t, err)
			write(Op{Kind: Patch, ID: id, Patch: p})
		default:
			r := write(Op{Kind: Upsert, Doc: doc})
			require.True(t, json.Valid(r.JSON))
		}
	}
	require.Positive(t, count())
	for id := range 10 {
		write(Op{Kind: Delete, ID: fmt.Sprint(id)})
	}
	require.Zero(t, count())
	doc, err := c.ParseDocument(fmt.Appendf(nil, `{"id":"x","pk":"p","data":%q}`, strings.Repeat("x", 5000)), false)
	require.NoError(t, err)
	write(Op{Kind: Create, Doc: doc})
	require.NoError(t, e.DeleteContainer(t.Context(), "db", "c", ""))
	require.Zero(t, count())
}

func TestWrite_ToAReplacedContainerIsRefused(t *testing.T) {
	e, old := testContainer(t, defaultPolicy)
	require.NoError(t, e.DeleteContainer(t.Context(), "db", "c", ""))
	_, err := e.CreateContainer(t.Context(), "db", []byte(`{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}`), Throughput{})
	require.NoError(t, err)
	doc, err := old.ParseDocument([]byte(`{"id":"x","pk":"p"}`), false)
	require.NoError(t, err)
	_, err = e.Write(t.Context(), old, `["p"]`, []Op{{Kind: Create, Doc: doc}}, Consistency{})
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 404, refused.Status)
}

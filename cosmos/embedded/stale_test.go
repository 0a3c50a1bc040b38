package embedded_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func azcosmosETag(s string) *azcore.ETag {
	etag := azcore.ETag(s)
	return &etag
}

func TestStale_SetsTheAgeOfReadsWithinTheSession(t *testing.T) {
	back := 0
	calls := 0
	_, c := openEngine(t, embedded.Options{Stale: func() int { calls++; return back }})
	createDocs(t, c, newDoc("a", 0))
	tokens := []string{}
	for n := 1; n <= 100; n++ {
		answer, err := c.ReplaceItem(t.Context(), pk, "a", newDoc("a", n), nil)
		require.NoError(t, err)
		tokens = append(tokens, *answer.SessionToken)
	}
	require.Zero(t, calls, "a write is never stale")
	read := func(o *azcosmos.QueryOptions) string { return queryAll(t, c, pk, "SELECT VALUE c.n FROM c", o)[0][0] }
	for _, tc := range []struct {
		back int
		want string
	}{{0, "100"}, {1, "99"}, {10, "90"}, {64, "36"}, {1000, "36"}} {
		back = tc.back
		before := calls
		require.Equal(t, tc.want, read(nil), "%d commits ago", tc.back)
		item, err := c.ReadItem(t.Context(), pk, "a", nil)
		require.NoError(t, err)
		require.Contains(t, string(item.Value), `"n":`+tc.want+`,`)
		require.Equal(t, before+2, calls, "once per read")
	}
	back = 1000
	require.Equal(t, "100", read(&azcosmos.QueryOptions{SessionToken: &tokens[99]}))
	_, err := c.ReplaceItem(t.Context(), pk, "a", newDoc("a", 101), nil)
	require.NoError(t, err)
	require.Contains(t, []string{"100", "101"}, read(&azcosmos.QueryOptions{SessionToken: &tokens[99]}))

	back = 5
	item, err := c.ReadItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	_, err = c.ReplaceItem(t.Context(), pk, "a", newDoc("a", 1), &azcosmos.ItemOptions{IfMatchEtag: &item.ETag})
	require.Equal(t, 412, clientStatus(t, nil, err), "a condition is checked against the newest state")
}

func TestOpen_RefusesContradictoryOptions(t *testing.T) {
	stale := func() int { return 1 }
	for _, o := range []embedded.Options{
		{Stale: stale, Dir: t.TempDir()},
		{Stale: stale, Consistency: "Strong"},
		{Consistency: "Total"},
		{Key: "not base64!"},
	} {
		_, err := embedded.Open(o)
		require.Error(t, err)
	}
}

package embedded_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

var whole = &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

// readFeed reads a change feed from a token to the end. It returns the ids of the documents and the next token.
func readFeed(t testing.TB, c *azcosmos.ContainerClient, o azcosmos.ChangeFeedOptions) (ids []string, token string) {
	t.Helper()
	if o.FeedRange == nil && o.Continuation == nil {
		o.FeedRange = whole
	}
	for {
		page, err := c.ReadChangeFeed(t.Context(), &o)
		require.NoError(t, err)
		require.Positive(t, page.RequestCharge)
		if page.Count == 0 {
			return ids, page.ContinuationToken
		}
		for _, item := range page.Items {
			ids = append(ids, idOf(t, item))
		}
		o.Continuation = &page.ContinuationToken
	}
}

func idOf(t testing.TB, item []byte) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(item), `"id":"`)
	require.True(t, ok, "%s", item)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func TestChangeFeed_HasNewestVersionsInOrderOfChanges(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			_, c := openEngine(t, embedded.Options{Dir: dir})
			createDocs(t, c, newDoc("a", 1), newDoc("b", 1), newDoc("d", 1), newDoc("e", 1))
			_, err := c.ReplaceItem(t.Context(), pk, "a", newDoc("a", 2), nil)
			require.NoError(t, err)
			_, err = c.DeleteItem(t.Context(), pk, "d", nil)
			require.NoError(t, err)
			ids, token := readFeed(t, c, azcosmos.ChangeFeedOptions{MaxItemCount: 2})
			require.Equal(t, []string{"b", "e", "a"}, ids)
			ids, token = readFeed(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
			require.Empty(t, ids)
			createDocs(t, c, newDoc("f", 1))
			ids, _ = readFeed(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
			require.Equal(t, []string{"f"}, ids)
			other := azcosmos.NewPartitionKeyString("other")
			ids, _ = readFeed(t, c, azcosmos.ChangeFeedOptions{PartitionKey: &other})
			require.Empty(t, ids)
		})
	}
}

func TestChangeFeed_StartsAtATimeOrNow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	engine, c := openEngine(t, embedded.Options{Clock: func() time.Time { return now }})
	createDocs(t, c, newDoc("a", 1))
	since := now
	now = now.Add(time.Second)
	createDocs(t, c, newDoc("b", 1))
	ids, _ := readFeed(t, c, azcosmos.ChangeFeedOptions{StartFrom: &since})
	require.Equal(t, []string{"b"}, ids)

	feed := func(header ...string) (int, string, string) {
		header = append(header, "A-IM", "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid", "0")
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "GET", docsPath, "docs", containerLink, "", header...))
		return answer.StatusCode, answer.Header.Get("etag"), body
	}
	status, etag, _ := feed("If-None-Match", "*")
	require.Equal(t, 304, status)
	createDocs(t, c, newDoc("d", 1))
	status, _, body := feed("If-None-Match", etag)
	require.Equal(t, 200, status)
	require.Contains(t, body, `"_count":1`)
	require.Contains(t, body, `"id":"d"`)
	status, _, _ = feed("If-Modified-Since", "yesterday")
	require.Equal(t, 400, status)
	status, _, _ = feed("If-None-Match", `"x"`)
	require.Equal(t, 400, status)
}

// raiseThroughput sets the manual throughput of a container.
func raiseThroughput(t testing.TB, c *azcosmos.ContainerClient, to int32) {
	t.Helper()
	_, err := c.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(to), nil)
	require.NoError(t, err)
}

func TestSplit_LosesNoDocumentForAnyReader(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	var want []string
	var many []azcosmos.ItemIdentity
	for i := range 40 {
		id := fmt.Sprintf("i%02d", i)
		key := azcosmos.NewPartitionKeyString(fmt.Sprint("p", i))
		_, err := c.CreateItem(t.Context(), key, fmt.Appendf(nil, `{"id":%q,"pk":"p%d"}`, id, i), nil)
		require.NoError(t, err)
		want = append(want, id)
		many = append(many, azcosmos.ItemIdentity{ID: id, PartitionKey: key})
	}
	first, token := readFeed(t, c, azcosmos.ChangeFeedOptions{MaxItemCount: 10})
	require.Equal(t, want, first)
	for _, step := range []struct {
		throughput int32
		ranges     int
	}{{25_000, 3}, {60_000, 6}, {30_000, 6}} { // reducing the throughput does not merge ranges
		raiseThroughput(t, c, step.throughput)
		read, err := c.ReadManyItems(t.Context(), many, nil)
		require.NoError(t, err)
		require.Len(t, read.Items, 40)
		ranges, err := c.ReadFeedRanges(t.Context(), nil) // ReadManyItems read the ranges again, because a range had split
		require.NoError(t, err)
		require.Len(t, ranges, step.ranges)
		ids, _ := readFeed(t, c, azcosmos.ChangeFeedOptions{MaxItemCount: 7})
		require.ElementsMatch(t, want, ids)
	}
	ids, _ := readFeed(t, c, azcosmos.ChangeFeedOptions{Continuation: &token})
	require.Empty(t, ids, "a token from before the splits goes on where it was")

	answer, _ := sendRequest(t, engine, signedRequest(t, engine, "GET", docsPath, "docs", containerLink, "", "A-IM", "Incremental Feed",
		"x-ms-documentdb-partitionkeyrangeid", "0"))
	require.Equal(t, 410, answer.StatusCode, "range 0 has split")
	require.Equal(t, "1002", answer.Header.Get("x-ms-substatus"))
}

package embedded_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// TestQuery_HoldsNoTransactionBetweenPages closes the store between two pages of a query, and reads the second page
// with a new engine. An open read transaction would block Close.
func TestQuery_HoldsNoTransactionBetweenPages(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine)
	for i := range 9 {
		createDocs(t, c, newDoc(fmt.Sprint(i), i*7%9))
	}
	queries := map[string]azcosmos.PartitionKey{
		"SELECT VALUE c.id FROM c":                         pk,
		"SELECT VALUE c.id FROM c ORDER BY c.n":            pk,
		"SELECT VALUE c.id FROM c ORDER BY c.id":           pk,
		"SELECT VALUE c.id FROM c WHERE c.n > 2":           azcosmos.NewPartitionKey(),
		"SELECT VALUE c.id FROM c OFFSET 1 LIMIT 7":        pk,
		"SELECT DISTINCT VALUE c.n FROM c":                 pk,
		"SELECT VALUE c.id FROM c WHERE c.id IN ('2','8')": pk,
	}
	want, got, tokens := map[string][]string{}, map[string][]string{}, map[string]*string{}
	for query, key := range queries {
		want[query] = queryAll(t, c, key, query, nil)[0]
		tokens[query] = nil
	}
	_, feed := readFeed(t, c, azcosmos.ChangeFeedOptions{MaxItemCount: 4})
	for len(tokens) > 0 {
		for query, token := range tokens {
			page, err := c.NewQueryItemsPager(query, queries[query], &azcosmos.QueryOptions{PageSizeHint: 2, ContinuationToken: token}).NextPage(t.Context())
			require.NoError(t, err, query)
			for _, item := range page.Items {
				got[query] = append(got[query], string(item))
			}
			if tokens[query] = page.ContinuationToken; page.ContinuationToken == nil {
				delete(tokens, query)
			}
		}
		require.NoError(t, engine.Close())
		engine, err = embedded.Open(embedded.Options{Dir: dir})
		require.NoError(t, err)
		c, err = newClient(t, engine).NewContainer("db", "c")
		require.NoError(t, err)
	}
	defer func() { require.NoError(t, engine.Close()) }()
	require.Equal(t, want, got)
	createDocs(t, c, newDoc("new", 1))
	ids, _ := readFeed(t, c, azcosmos.ChangeFeedOptions{Continuation: &feed})
	require.Equal(t, []string{"new"}, ids, "so does a change feed")
}

// TestSession_ReadsItsOwnWrites runs several clients on an account with random Lag. Each client sends the session token
// of its last response, and must read its own writes.
func TestSession_ReadsItsOwnWrites(t *testing.T) {
	for _, level := range []string{"BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"} {
		var mu sync.Mutex
		lag := 0
		_, c := openEngine(t, embedded.Options{Consistency: level, Stale: func() int {
			mu.Lock()
			defer mu.Unlock()
			lag = (lag*5 + 3) % 17
			return lag
		}})
		behind, n := 0, 0
		var group sync.WaitGroup
		for client := range 4 {
			group.Go(func() {
				id := fmt.Sprint(client)
				for version := range 30 {
					written, err := c.UpsertItem(context.Background(), pk, newDoc(id, version), nil)
					if err != nil {
						t.Error(err)
						return
					}
					own, err := c.ReadItem(context.Background(), pk, id, &azcosmos.ItemOptions{SessionToken: written.SessionToken})
					if err != nil || own.ETag != written.ETag {
						t.Errorf("%s: a session does not read its own write: %v", level, err)
					}
					any, err := c.ReadItem(context.Background(), pk, id, nil)
					mu.Lock()
					n++
					if err != nil || any.ETag != written.ETag {
						behind++
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		require.Equal(t, 120, n)
		require.Positive(t, behind, "%s: without a token, reads are old now and then", level)
	}
}

func TestOrderedQuery_SeesWritesBetweenPages(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("one", 10), newDoc("two", 20), newDoc("three", 30)) // n increases in the order of insertion
	pager := c.NewQueryItemsPager("SELECT VALUE c.n FROM c ORDER BY c.n", pk, &azcosmos.QueryOptions{PageSizeHint: 1})
	var got []string
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		require.NoError(t, err)
		for _, item := range page.Items {
			got = append(got, string(item))
		}
		if len(got) == 1 {
			createDocs(t, c, newDoc("before", 5), newDoc("between", 25))
		}
	}
	require.Equal(t, []string{"10", "20", "25", "30"}, got)
}

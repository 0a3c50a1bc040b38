package embedded_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// TestSplit_IsReportedToClientsWithOldRanges uses clients that know only the ranges from before a split.
func TestSplit_IsReportedToClientsWithOldRanges(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	key := func(i int) string { return fmt.Sprint("p", i) }
	for i := range 20 {
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key(i)), fmt.Appendf(nil, `{"id":"a","pk":%q}`, key(i)), nil)
		require.NoError(t, err)
	}
	type ranges struct {
		PartitionKeyRanges []struct {
			ID, MinInclusive, MaxExclusive string
			Parents                        []string
		}
	}
	read := func(etag string) (status int, found ranges, next string) {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "GET", "/dbs/db/colls/c/pkranges", "pkranges", containerLink, "", "A-IM", "Incremental Feed", "If-None-Match", etag))
		if answer.StatusCode == 200 {
			require.NoError(t, json.Unmarshal([]byte(body), &found))
		}
		return answer.StatusCode, found, answer.Header.Get("etag")
	}
	status, first, etag := read("")
	require.Equal(t, 200, status)
	require.Len(t, first.PartitionKeyRanges, 1)
	status, _, same := read(etag)
	require.Equal(t, 304, status)
	require.Equal(t, etag, same)

	raiseThroughput(t, c, 20_000)
	status, second, etag := read(etag)
	require.Equal(t, 200, status)
	require.Len(t, second.PartitionKeyRanges, 2, "those that are new")
	for _, r := range second.PartitionKeyRanges {
		require.Equal(t, []string{"0"}, r.Parents)
	}
	require.Equal(t, second.PartitionKeyRanges[0].MaxExclusive, second.PartitionKeyRanges[1].MinInclusive)
	raiseThroughput(t, c, 30_000)
	_, third, etag := read(etag)
	require.Len(t, third.PartitionKeyRanges, 2, "the half that split, and not the other")
	require.Equal(t, []string{"0", second.PartitionKeyRanges[0].ID}, third.PartitionKeyRanges[0].Parents)
	status, _, _ = read(etag)
	require.Equal(t, 304, status)
	_, all, _ := read("")
	require.Len(t, all.PartitionKeyRanges, 3)

	// Each operation of a bulk request must belong to the range that the request names.
	done := 0
	for _, r := range all.PartitionKeyRanges {
		body := "["
		for i := range 20 {
			body += fmt.Sprintf(`{"operationType":"Read","partitionKey":"[\"%s\"]","id":"a"},`, key(i))
		}
		answer, text := sendRequest(t, engine, signedRequest(t, engine, "POST", docsPath, "docs", containerLink, body[:len(body)-1]+"]", isBatch, "True", inRange, r.ID))
		require.Equal(t, 207, answer.StatusCode)
		var results []struct{ StatusCode int }
		require.NoError(t, json.Unmarshal([]byte(text), &results))
		for _, result := range results {
			require.Contains(t, []int{200, 410}, result.StatusCode)
			if result.StatusCode == 200 {
				done++
			}
		}
	}
	require.Equal(t, 20, done, "every partition is in one range")
}

func TestChangeFeed_OfALogicalPartitionHasNoOthers(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{}, func(p *azcosmos.ContainerProperties) {
		p.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b"}, Kind: azcosmos.PartitionKeyKindMultiHash, Version: 2}
	})
	raiseThroughput(t, c, 20_000)
	for i := range 12 {
		a, b := fmt.Sprint("a", i%2), fmt.Sprint("b", i%3)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(a).AppendString(b), fmt.Appendf(nil, `{"id":"%d","a":%q,"b":%q}`, i, a, b), nil)
		require.NoError(t, err)
	}
	for key, want := range map[string][]string{
		`["a0","b0"]`: {"0", "6"},
		`["a1"]`:      {"1", "3", "5", "7", "9", "11"},
		`["a2"]`:      nil,
	} {
		for _, header := range [][]string{
			{"A-IM", "Incremental Feed"},
			{}, // all documents
		} {
			answer, body := sendRequest(t, engine, signedRequest(t, engine, "GET", docsPath, "docs", containerLink, "", append(header, inP, key)...))
			var page struct{ Documents []struct{ ID string } }
			if answer.StatusCode != 304 {
				require.Equal(t, 200, answer.StatusCode, body)
				require.NoError(t, json.Unmarshal([]byte(body), &page))
			}
			var got []string
			for _, d := range page.Documents {
				got = append(got, d.ID)
			}
			require.Equal(t, want, got, "%s %v", key, header)
		}
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "POST", docsPath, "docs", containerLink, `{"query":"SELECT * FROM c"}`,
			isQuery, "True", "Content-Type", "application/query+json", "x-ms-cosmos-is-query-plan-request", "True", inP, key))
		require.Equal(t, 200, answer.StatusCode, body)
		require.Contains(t, body, `"queryRanges":[{`)
		require.NotContains(t, body, `"min":""`, "the plan leads to a part of the container")
	}
}

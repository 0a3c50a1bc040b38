package embedded_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestQuery_ContinuesOnAnotherPageAtItsWorkLimit(t *testing.T) {
	for _, text := range []string{
		"SELECT VALUE c.id FROM c WHERE c.n + 1 > 0",
		"SELECT VALUE c.id FROM c WHERE c.n + 1 = 90",
		"SELECT VALUE x FROM c JOIN x IN c.l",
		"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE 1 FROM x IN c.l WHERE x = c.n)",
	} {
		for _, cross := range []bool{false, true} {
			var pages [2]int
			var results [2][]string
			for i, steps := range []int64{0, 4_000} {
				_, c := openEngine(t, embedded.Options{QuerySteps: steps})
				for n := range 150 {
					key := fmt.Sprint("p", n%3)
					if !cross {
						key = "p"
					}
					body := fmt.Appendf(nil, `{"id":"%d","pk":%q,"n":%d,"l":[%s1]}`, n, key, n, strings.Repeat("2,", 15))
					_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), body, nil)
					require.NoError(t, err)
				}
				key, o := azcosmos.NewPartitionKeyString("p"), &azcosmos.QueryOptions{PageSizeHint: -1}
				if cross {
					key = azcosmos.NewPartitionKey()
				}
				found := queryAll(t, c, key, text, o)
				pages[i], results[i] = len(found), slices.Concat(found...)
			}
			require.Equal(t, 1, pages[0], text)
			require.Equal(t, results[0], results[1], text)
			if strings.Contains(text, "c.l") {
				require.Greater(t, pages[1], 1, text)
			}
		}
	}
}

func TestQuery_IsRefusedBeyondItsLimits(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{QuerySteps: 4_000, QueryMemory: 50_000})
	for n := range 150 {
		createDocs(t, c, fmt.Appendf(nil, `{"id":"%d","pk":"p","n":%d,"s":"%s","l":[%s1]}`, n, n, strings.Repeat("s", 200), strings.Repeat("2,", 15)))
	}
	for text, reason := range map[string]string{
		"SELECT VALUE COUNT(1) FROM c JOIN x IN c.l":                                             "takes too long",
		"SELECT c.id FROM c WHERE EXISTS(SELECT VALUE 1 FROM x IN c.l WHERE x = 1) ORDER BY c.n": "takes too long",
		"SELECT VALUE c.id FROM c JOIN x IN c.l OFFSET 2000 LIMIT 1":                             "takes too long",
		"SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l":                               "takes too long",
		"SELECT DISTINCT c.id, c.s FROM c":                                                       "too much memory",
		"SELECT c.id, c.s, COUNT(1) FROM c GROUP BY c.id, c.s":                                   "too much memory",
		"SELECT c.id FROM c ORDER BY c.s":                                                        "too much memory",
	} {
		answer, body := sendRequest(t, engine, queryRequest(t, engine, text, "[]")())
		require.Equal(t, 400, answer.StatusCode, text)
		require.Contains(t, body, reason, text)
	}
	answer, body := sendRequest(t, engine, queryRequest(t, engine, "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 0", "[]")())
	require.Equal(t, 200, answer.StatusCode, body)
}

package engine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPartitionKeyHeader parses arbitrary partition key headers. A header must be refused, or its Partition must be
// canonical, have a range, and fit into a bbolt key.
func FuzzPartitionKeyHeader(f *testing.F) {
	for _, s := range []string{
		`["p"]`, `[1]`, `[1.0]`, `[-0]`, `[1e2]`, `[null]`, `[true]`, `[{}]`, `[ ]`, `[[]]`, `[{"a":1}]`, `["a","b"]`, `["a",null,{}]`,
		`["é\u00e9\ud83d\ude00"]`, `["\u0000\"\\"]`, `[`, `"p"`, ``, `["` + strings.Repeat("k", 2048) + `"]`, `["` + strings.Repeat(`\u0001`, 2048) + `"]`,
	} {
		f.Add(s)
	}
	containers := []*Container{newKeyedContainer(f, 2, `["/pk"]`, 3), newKeyedContainer(f, 1, `["/pk"]`, 1), newKeyedContainer(f, 2, `["/a","/b","/c"]`, 3)}
	f.Fuzz(func(t *testing.T, header string) {
		for _, c := range containers {
			pk, err := c.ParsePartition(header)
			if err != nil {
				require.Empty(t, pk)
			} else {
				again, err := c.ParsePartition(string(pk))
				require.NoError(t, err)
				require.Equal(t, pk, again, "equal values are equal text")
				require.True(t, c.RangeOf(pk).hasKey(c.effectiveKey(pk)))
				require.Less(t, len(idKey(c.number, pk, strings.Repeat("i", maxID))), 32<<10)
			}
			whole, prefix, err := c.ParseScope(header)
			if err == nil && prefix == "" {
				require.Equal(t, pk, whole, "a whole key is the same for an item and for a query")
			}
		}
	})
}

package embedded_test

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// baskets are the documents of one partition.
var baskets = []string{
	`{"id":"1","pk":"p","by":"ann","n":3,"items":[{"k":"tea","q":2},{"k":"cup","q":1}]}`,
	`{"id":"2","pk":"p","by":"bob","n":1,"items":[]}`,
	`{"id":"3","pk":"p","by":"ann","n":2,"items":[{"k":"tea","q":5},{"k":"pot","q":1},{"k":"cup","q":4}]}`,
	`{"id":"4","pk":"p","n":4}`,
}

func TestPagesOfRowsAndGroups_FormTheWholeResult(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for _, d := range baskets {
		createDocs(t, c, []byte(d))
	}
	for _, tc := range []struct{ query, want string }{
		{"SELECT VALUE i.k FROM c JOIN i IN c.items", `"tea" "cup" "tea" "pot" "cup"`},
		{"SELECT c.id, i.q FROM c JOIN i IN c.items WHERE i.q > 1 AND c.n > 2", `{"id":"1","q":2}`},
		{"SELECT VALUE i.q FROM i IN c.items OFFSET 1 LIMIT 3", `1 5 1`},
		{"SELECT TOP 4 VALUE i.q FROM i IN c.items", `2 1 5 1`},
		{"SELECT VALUE i.k FROM c JOIN i IN c.items ORDER BY c.n", `"tea" "pot" "cup" "tea" "cup"`},
		{"SELECT VALUE i.k FROM c JOIN i IN c.items ORDER BY c.n DESC OFFSET 1 LIMIT 2", `"cup" "tea"`},
		{"SELECT DISTINCT VALUE i.k FROM c JOIN i IN c.items", `"tea" "cup" "pot"`},
		{"SELECT DISTINCT TOP 2 c['by'] FROM c", `{"by":"ann"} {"by":"bob"}`},
		{"SELECT c['by'], COUNT(1) AS n, SUM(c.n) AS sum FROM c GROUP BY c['by']", `{"n":1,"sum":4} {"by":"ann","n":2,"sum":5} {"by":"bob","n":1,"sum":1}`},
		{"SELECT VALUE {'n': COUNT(1), 'max': MAX(i.q)} FROM c JOIN i IN c.items", `{"n":5,"max":5}`},
		{"SELECT VALUE (SELECT VALUE SUM(i.q) FROM i IN c.items) FROM c ORDER BY c.id DESC", `0 10 0 3`},
		{"SELECT VALUE 1 + 1", `2`},
	} {
		for _, size := range []int32{0, 1, 2, -1} {
			var got []string
			for _, page := range queryAll(t, c, pk, tc.query, &azcosmos.QueryOptions{PageSizeHint: size}) {
				got = append(got, page...)
			}
			require.Equal(t, tc.want, strings.Join(got, " "), "%s, pages of %d", tc.query, size)
		}
	}
}

func TestQueryAcrossPartitions_ServesFiltersAndProjections(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for i, d := range baskets {
		key := fmt.Sprint("p", i%2)
		d = strings.Replace(d, `"pk":"p"`, fmt.Sprintf(`"pk":%q`, key), 1)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), []byte(d), nil)
		require.NoError(t, err)
	}
	everywhere := azcosmos.NewPartitionKey()
	for _, size := range []int32{1, 2, -1} {
		var got []string
		for _, page := range queryAll(t, c, everywhere, "SELECT VALUE CONCAT(c.id, i.k) FROM c JOIN i IN c.items WHERE i.q < 5", &azcosmos.QueryOptions{PageSizeHint: size}) {
			got = append(got, page...)
		}
		require.Equal(t, `"1tea" "1cup" "3pot" "3cup"`, strings.Join(got, " "), "pages of %d", size)
	}
	for _, query := range []string{
		"SELECT * FROM c ORDER BY c.n", "SELECT TOP 1 * FROM c", "SELECT * FROM c OFFSET 0 LIMIT 1", "SELECT DISTINCT c.n FROM c",
		"SELECT c.n FROM c GROUP BY c.n", "SELECT VALUE COUNT(1) FROM c", "SELECT VALUE MAX(i.q) FROM i IN c.items",
	} {
		_, err := c.NewQueryItemsPager(query, everywhere, nil).NextPage(t.Context())
		var refused *azcore.ResponseError
		require.ErrorAs(t, err, &refused, query)
		require.Equal(t, http.StatusBadRequest, refused.StatusCode, query)
		require.ErrorContains(t, err, "can not be directly served by the gateway", query)
		queryAll(t, c, everywhere, strings.Replace(strings.Replace(query, " FROM c", " FROM c WHERE c.pk = 'p0'", 1), " FROM i IN c.items", " FROM c JOIN i IN c.items WHERE c.pk = 'p0'", 1), nil)
	}
}

func TestQuery_ThatIsRefusedNamesThePosition(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for _, d := range baskets {
		createDocs(t, c, []byte(d))
	}
	for query, at := range map[string]int{
		"SELECT * FROM c WHERE SOUNDEX(c.id) = 'x'":               22,
		"SELECT VALUE (SELECT VALUE i FROM i IN c.items) FROM c":  13, // the query fails only if a document has more than one item
		"SELECT VALUE i FROM c JOIN i IN c.items ORDER BY i.q":    49,
		"SELECT c.id FROM c JOIN i IN c.items GROUP BY c['by']":   7,
		"SELECT * FROM c JOIN i IN c.items":                       0,
		"SELECT VALUE COUNT(1) FROM c WHERE c.n = 1 HAVING c.n>1": 43,
	} {
		_, err := c.NewQueryItemsPager(query, pk, nil).NextPage(t.Context())
		var refused *azcore.ResponseError
		require.True(t, errors.As(err, &refused), query)
		require.Equal(t, http.StatusBadRequest, refused.StatusCode, query)
		require.ErrorContains(t, err, fmt.Sprintf("position %d:", at), query)
	}
}

// TestQuery_NeedsAnIndexToOrderAndNoneToFilter checks that a path without an index can be filtered (by a scan), but is
// refused in ORDER BY, as on Azure.
func TestQuery_NeedsAnIndexToOrderAndNoneToFilter(t *testing.T) {
	none := func(p *azcosmos.ContainerProperties) {
		p.IndexingPolicy = &azcosmos.IndexingPolicy{IndexingMode: azcosmos.IndexingModeNone}
	}
	excluded := func(p *azcosmos.ContainerProperties) {
		p.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent, ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/*"}},
		}
	}
	for name, change := range map[string]func(*azcosmos.ContainerProperties){"none": none, "excluded": excluded} {
		t.Run(name, func(t *testing.T) {
			_, c := openEngine(t, embedded.Options{}, change)
			createDocs(t, c, []byte(`{"id":"a","pk":"p","slot":1}`), []byte(`{"id":"b","pk":"p","slot":2}`))
			require.Equal(t, `"b"`, strings.Join(queryAll(t, c, pk, "SELECT VALUE c.id FROM c WHERE c.slot > 1", nil)[0], " "))
			_, err := c.NewQueryItemsPager("SELECT * FROM c WHERE c.slot > 1 ORDER BY c.slot", pk, nil).NextPage(t.Context())
			require.ErrorContains(t, err, "The index path corresponding to the specified order-by item is excluded.")
		})
	}
}

func TestOrderBy_ReturnsDocumentsWithoutTheProperty(t *testing.T) {
	skip := embedded.Options{OrderByOnlyIndexed: true}
	all := func(*azcosmos.ContainerProperties) {}
	for name, tc := range map[string]struct {
		options embedded.Options
		change  func(*azcosmos.ContainerProperties)
		query   string
		want    string
	}{
		"all paths":               {embedded.Options{}, all, "ORDER BY c.slot", `"a" "b"`},
		"all paths, descending":   {embedded.Options{}, all, "ORDER BY c.slot DESC", `"b" "a"`},
		"all paths, only indexed": {skip, all, "ORDER BY c.slot", `"b"`},
		"one path":                {embedded.Options{}, onlySlot, "ORDER BY c.slot", `"a" "b"`},
		"one path, only indexed":  {skip, onlySlot, "ORDER BY c.slot", `"a" "b"`},
		"composite, only indexed": {skip, func(p *azcosmos.ContainerProperties) {
			p.IndexingPolicy = &azcosmos.IndexingPolicy{
				Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
				IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
				CompositeIndexes: [][]azcosmos.CompositeIndex{{
					{Path: "/slot", Order: azcosmos.CompositeIndexAscending}, {Path: "/id", Order: azcosmos.CompositeIndexAscending},
				}},
			}
		}, "ORDER BY c.slot, c.id", `"a" "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := openEngine(t, tc.options, tc.change)
			createDocs(t, c, []byte(`{"id":"a","pk":"p"}`), []byte(`{"id":"b","pk":"p","slot":1}`))
			require.Equal(t, tc.want, strings.Join(queryAll(t, c, pk, "SELECT VALUE c.id FROM c "+tc.query, nil)[0], " "))
		})
	}
}

// TestQuery_ReadsAWindowOverTheContainer reads all pages of the query that the .NET client sends for
// Skip().Take().Where().
func TestQuery_ReadsAWindowOverTheContainer(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for i := range 10 {
		createDocs(t, c, newDoc(strconv.Itoa(i), i))
	}
	for query, want := range map[string]string{
		"SELECT VALUE r.n FROM (SELECT VALUE c FROM c ORDER BY c.n DESC OFFSET 2 LIMIT 4) AS r WHERE r.n != 6": "7 5 4",
		"SELECT VALUE COUNT(1) FROM (SELECT TOP 3 VALUE c FROM c WHERE c.n > 1) AS r":                          "3",
		"SELECT VALUE COUNT(1) FROM c ORDER BY c.n":                                                            "10",
		"SELECT VALUE r.n FROM (SELECT TOP 3 VALUE c FROM c WHERE c.id IN ('8', '9')) AS r":                    "8 9",
	} {
		for _, size := range []int32{1, 2, -1} {
			var got []string
			for _, page := range queryAll(t, c, pk, query, &azcosmos.QueryOptions{PageSizeHint: size}) {
				require.True(t, size < 0 || len(page) <= int(size))
				got = append(got, page...)
			}
			require.Equal(t, want, strings.Join(got, " "), "%s, pages of %d", query, size)
		}
	}
	_, err := c.NewQueryItemsPager("SELECT VALUE r.n FROM (SELECT TOP 3 VALUE c FROM c) AS r", azcosmos.NewPartitionKey(), nil).NextPage(t.Context())
	require.Equal(t, 400, clientStatus(t, nil, err), "it spans partitions")
	require.Equal(t, []string{"1"}, queryAll(t, c, azcosmos.NewPartitionKey(), "SELECT VALUE COUNT(1) FROM (SELECT TOP 1 VALUE c FROM c WHERE c.pk = 'p') AS r", nil)[0])
}

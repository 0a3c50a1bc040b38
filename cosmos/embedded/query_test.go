package embedded_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

var zoo = []string{
	`{"id":"1","pk":"p","x":1,"s":"b","o":{"in":[10,20,{"deep":"d"}]}}`,
	`{"id":"2","pk":"p","x":2.5,"s":"a","t":true}`,
	`{"id":"3","pk":"p","x":null,"s":"ä\"\\"}`,
	`{"id":"4","pk":"p","x":"1","a":[1,2]}`,
	`{"id":"5","pk":"p","s":"c","o":{"b":1,"a":2}}`,
	`{"id":"6","pk":"p","x":false,"strange name":1}`,
}

func TestQuery_FindsTheDocumentsThatCosmosFinds(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for _, d := range zoo {
		createDocs(t, c, []byte(d))
	}
	_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("q"), []byte(`{"id":"9","pk":"q","x":1}`), nil)
	require.NoError(t, err)
	params := []azcosmos.QueryParameter{{Name: "@one", Value: 1}, {Name: "@list", Value: []int{1, 2}}, {Name: "@s", Value: `ä"\`}, {Name: "@null", Value: nil}}
	for _, tc := range []struct{ query, want string }{
		{"", "123456"},
		{"WHERE c.x = 1", "1"},
		{"WHERE c.x = @one", "1"},
		{"WHERE @one = c.x", "1"},
		{"WHERE c.x != 1", "2346"},
		{"WHERE c.x <> 1", "2346"},
		{"WHERE NOT c.x = 1", "2346"},
		{"WHERE c.x > 1", "2"},
		{"WHERE c.x >= 1", "12"},
		{"WHERE c.x < '2'", "4"},
		{"WHERE c.x BETWEEN 1 AND 2", "1"},
		{"WHERE c.x NOT BETWEEN 1 AND 2", "2"},
		{"WHERE c.x IN (1, '1', null)", "134"},
		{"WHERE c.x NOT IN (1, '1')", "236"},
		{"WHERE c.x = null", "3"},
		{"WHERE c.x = @null", "3"},
		{"WHERE IS_NULL(c.x)", "3"},
		{"WHERE IS_DEFINED(c.x)", "12346"},
		{"WHERE NOT IS_DEFINED(c.x)", "5"},
		{"WHERE c.missing = c.missing", ""},
		{"WHERE c.missing != 1", ""},
		{"WHERE NOT (c.missing = 1)", ""},
		{"WHERE c.missing = 1 OR c.x = 1", "1"},
		{"WHERE c.missing = 1 AND c.x = 1", ""},
		{"WHERE NOT (c.missing = 1 AND c.x = 1)", "2346"},
		{"WHERE c.t", "2"},
		{"WHERE c.x", ""},
		{"WHERE c.s = @s", "3"},
		{`WHERE c.s = "ä\"\\"`, "3"},
		{"WHERE c.s >= 'b'", "135"},
		{"WHERE c.o['in'][1] = 20", "1"},
		{"WHERE c.o['in'][2].deep = 'd'", "1"},
		{"WHERE c['strange name'] = 1", "6"},
		{"WHERE c.a = @list", "4"},
		{"WHERE c.o = c.o", "15"},
		{"WHERE c.x = -1 OR c.x = 25e-1", "2"},
		{"WHERE STARTSWITH(c.s, 'ä') OR ENDSWITH(c.s, 'c') OR CONTAINS(c.s, 'b')", "135"},
		{"WHERE ARRAY_CONTAINS(c.a, 2) OR ARRAY_LENGTH(c.o['in']) = 3", "14"},
		{"WHERE IS_STRING(c.x) OR IS_BOOL(c.x) OR IS_OBJECT(c.x)", "46"},
		{"WHERE (c.x = 1 OR c.x = 2.5) AND c.s = 'a'", "2"},
		{"WHERE c.x = 1 OR c.x = 2.5 AND c.s = 'b'", "1"},
		{"ORDER BY c.x", "536124"},
		{"ORDER BY c.x DESC", "421635"},
		{"ORDER BY c.s DESC OFFSET 1 LIMIT 2", "51"},
		{"WHERE c.x > 0 ORDER BY c.s", "21"},
		{"OFFSET 2 LIMIT 3", "345"},
	} {
		for _, size := range []int32{0, 1, 2, -1} {
			got := ""
			for _, page := range queryAll(t, c, pk, "SELECT VALUE c.id FROM c "+tc.query, &azcosmos.QueryOptions{QueryParameters: params, PageSizeHint: size}) {
				got += strings.ReplaceAll(strings.Join(page, ""), `"`, "")
			}
			require.Equal(t, tc.want, got, "%s, pages of %d", tc.query, size)
		}
	}
}

func TestDocumentID_NumbersDocumentsInTheirOrder(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	createDocs(t, c, []byte(`{"id":"1","pk":"p"}`), []byte(`{"id":"2","pk":"p"}`))
	first := queryAll(t, c, pk, "SELECT VALUE DOCUMENTID(c) FROM c WHERE c.id = '1'", nil)[0][0]
	require.Len(t, first, 1, "a new account has few documents")
	require.Equal(t, [][]string{{`"2"`}}, queryAll(t, c, pk, "SELECT VALUE c.id FROM c WHERE DOCUMENTID(c) > "+first, nil))
}

func TestQuery_ProjectsAsCosmosDoes(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for _, d := range zoo {
		createDocs(t, c, []byte(d))
	}
	for _, tc := range []struct{ query, want string }{
		{"SELECT c.id, c.x, c.o['in'][1] FROM c WHERE c.id = '1'", `{"id":"1","x":1,"$1":20}`},
		{"SELECT r.s AS text, r.id = '1', 'k', 2 FROM root r WHERE r.id = '1'", `{"text":"b","$1":true,"$2":"k","$3":2}`},
		{"select value c.x from docs AS c where c.id in ('4', '5', '6')", `"1" false`},
		{"SELECT c.missing FROM c WHERE c.id = '1'", `{}`},
		{"SELECT TOP 2 VALUE c.id FROM c", `"1" "2"`},
		{"SELECT TOP 0 VALUE c.id FROM c", ``},
		{"SELECT TOP 2 VALUE c.id FROM c ORDER BY c.id DESC", `"6" "5"`},
		{"SELECT VALUE c.x FROM c ORDER BY c.id", `1 2.5 null "1" false`},
		{"SELECT VALUE COUNT(1) FROM c", `6`},
		{"SELECT VALUE COUNT(c.x) FROM c", `5`},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.x = 77", `0`},
		{"SELECT VALUE SUM(c.x) FROM c WHERE IS_NUMBER(c.x)", `3.5`},
		{"SELECT VALUE SUM(c.x) FROM c", ``},
		{"SELECT VALUE AVG(c.x) FROM c WHERE c.x > 0", `1.75`},
		{"SELECT VALUE MIN(c.s) FROM c", `"a"`},
		{"SELECT VALUE MAX(c.s) FROM c", `"ä\"\\"`},
		{"SELECT VALUE MAX(c.s) FROM c WHERE c.id = '0'", ``},
		{"SELECT VALUE c.o FROM c WHERE c.id = '5'", `{"b":1,"a":2}`},
	} {
		for _, size := range []int32{0, 1} {
			var got []string
			for _, page := range queryAll(t, c, pk, tc.query, &azcosmos.QueryOptions{PageSizeHint: size}) {
				got = append(got, page...)
			}
			require.Equal(t, tc.want, strings.Join(got, " "), tc.query)
		}
	}
}

func TestPages_EndAsTheEmulatorSuiteExpects(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for i := range 10 {
		for p, key := range []string{"p", "q"} {
			d := fmt.Appendf(nil, `{"id":"%d","pk":%q}`, i+10*p, key)
			_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), d, nil)
			require.NoError(t, err)
		}
	}
	five := &azcosmos.QueryOptions{PageSizeHint: 5}
	require.Len(t, queryAll(t, c, pk, "SELECT * FROM c", five), 2)
	require.Len(t, queryAll(t, c, pk, "SELECT * FROM c ORDER BY c.id", five), 2)
	require.Len(t, queryAll(t, c, azcosmos.NewPartitionKey(), "SELECT * FROM c WHERE c.pk = 'p' ORDER BY c.id", five), 2)
	across := queryAll(t, c, azcosmos.NewPartitionKey(), "SELECT VALUE c.id FROM c", five)
	require.Equal(t, [][]string{
		{`"0"`, `"10"`, `"1"`, `"11"`, `"2"`},
		{`"12"`, `"3"`, `"13"`, `"4"`, `"14"`},
		{`"5"`, `"15"`, `"6"`, `"16"`, `"7"`},
		{`"17"`, `"8"`, `"18"`, `"9"`, `"19"`},
		{},
	}, across)
}

func TestPage_HasAtMost4MB(t *testing.T) {
	_, c := openEngine(t, embedded.Options{}, onlySlot)
	for i := range 100 {
		createDocs(t, c, largeDoc(fmt.Sprint(i), i, "p"))
	}
	for _, query := range []string{"SELECT * FROM c", "SELECT * FROM c WHERE c.slot >= 0 ORDER BY c.slot", "SELECT * FROM c ORDER BY c.slot DESC"} {
		pages := queryAll(t, c, pk, query, &azcosmos.QueryOptions{PageSizeHint: -1})
		require.Len(t, pages, 2, query)
		require.Len(t, pages[0], 63, query)
		require.Len(t, pages[1], 37, query)
	}
}

// TestPagesOfAnyQuery_FormTheWholeResult sorts random documents in the test, and compares them with the pages of the
// query. Between the pages, it writes more documents.
func TestPagesOfAnyQuery_FormTheWholeResult(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	partition := 0
	rapid.Check(t, func(r *rapid.T) {
		partition++
		name := fmt.Sprint("p", partition)
		key := azcosmos.NewPartitionKeyString(name)
		values := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 40).Draw(r, "values")
		if rapid.Bool().Draw(r, "sorted") {
			slices.Sort(values)
		}
		batch := c.NewTransactionalBatch(key)
		for i, v := range values {
			batch.CreateItem(fmt.Appendf(nil, `{"id":"%d","pk":%q,"x":%d}`, i, name, v), nil)
		}
		if len(values) > 0 {
			answer, err := c.ExecuteTransactionalBatch(t.Context(), batch, nil)
			require.NoError(t, err)
			require.True(t, answer.Success)
		}
		descending := rapid.Bool().Draw(r, "descending")
		write := rapid.Bool().Draw(r, "write between pages")
		size := rapid.Int32Range(1, 15).Draw(r, "page size")
		query := "SELECT VALUE c.id FROM c WHERE c.x > @from ORDER BY c.x"
		if descending {
			query += " DESC"
		}
		from := rapid.IntRange(-1, 20).Draw(r, "from")
		var want, got []string
		for i, v := range values {
			if v > from {
				want = append(want, fmt.Sprintf("%q", fmt.Sprint(i)))
			}
		}
		slices.SortStableFunc(want, func(a, b string) int {
			order := cmp.Compare(valueOf(values, a), valueOf(values, b))
			if descending {
				order = -order
			}
			return order
		})
		pager := c.NewQueryItemsPager(query, key, &azcosmos.QueryOptions{
			PageSizeHint:    size,
			QueryParameters: []azcosmos.QueryParameter{{Name: "@from", Value: from}},
		})
		for n := 0; pager.More(); n++ {
			page, err := pager.NextPage(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Items), int(size))
			for _, item := range page.Items {
				got = append(got, string(item))
			}
			if write { // the condition of the query excludes the new document
				_, err := c.UpsertItem(t.Context(), key, fmt.Appendf(nil, `{"id":"w","pk":%q,"x":-%d}`, name, n+1), nil)
				require.NoError(t, err)
			}
		}
		require.Equal(t, want, got)
	})
}

func valueOf(values []int, quoted string) int {
	var id string
	var i int
	if json.Unmarshal([]byte(quoted), &id) != nil {
		return -1
	}
	if _, err := fmt.Sscan(id, &i); err != nil {
		return -1
	}
	return values[i]
}

func TestOrderBy_NeedsAnIndex(t *testing.T) {
	_, c := openEngine(t, embedded.Options{}, onlySlot)
	createDocs(t, c, []byte(`{"id":"a","pk":"p","slot":1}`))
	require.Len(t, queryAll(t, c, pk, "SELECT * FROM c ORDER BY c.slot", nil), 1)
	require.Len(t, queryAll(t, c, pk, "SELECT * FROM c ORDER BY c._ts", nil), 1)
	_, err := c.NewQueryItemsPager("SELECT * FROM c ORDER BY c.other", pk, nil).NextPage(t.Context())
	require.ErrorContains(t, err, "order-by item is excluded")
}

func TestContinuationToken_FitsOnlyItsQuery(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1), newDoc("b", 2), newDoc("c", 3))
	one := &azcosmos.QueryOptions{PageSizeHint: 1}
	page, err := c.NewQueryItemsPager("SELECT * FROM c ORDER BY c.n", pk, one).NextPage(t.Context())
	require.NoError(t, err)
	token := *page.ContinuationToken
	resume := func(query, token string, key azcosmos.PartitionKey) error {
		_, err := c.NewQueryItemsPager(query, key, &azcosmos.QueryOptions{PageSizeHint: 1, ContinuationToken: &token}).NextPage(t.Context())
		return err
	}
	require.NoError(t, resume("SELECT * FROM c ORDER BY c.n", token, pk))
	require.Error(t, resume("SELECT * FROM c ORDER BY c.n DESC", token, pk))
	require.Error(t, resume("SELECT * FROM c ORDER BY c.n", token, azcosmos.NewPartitionKeyString("q")))
	changed := []byte(token)
	i := rand.IntN(len(changed) - 1)
	changed[i] ^= 1
	require.Error(t, resume("SELECT * FROM c ORDER BY c.n", string(changed), pk))
}

func TestReadMany_ReturnsAllItems(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1), newDoc("b", 2), newDoc("c", 3))
	got, err := c.ReadManyItems(t.Context(), []azcosmos.ItemIdentity{{ID: "a", PartitionKey: pk}, {ID: "c", PartitionKey: pk}, {ID: "z", PartitionKey: pk}}, nil)
	require.NoError(t, err)
	require.Len(t, got.Items, 2)
	require.Positive(t, got.RequestCharge)
}

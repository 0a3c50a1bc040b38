package ledger_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

type params = map[string][]string

// A list contains only current rows, or all rows if the query requests them (case FM-90 of the
// original system).
func TestList_ReturnsCurrentRowsOrAllRows(t *testing.T) {
	f := newFixture(t)
	f.ingest("b", "a", "[C@01] [D@02] [C@03]")
	f.ingest("b", "b", "[C@01] [D@02]")
	f.ingest("a", "z", "[C@01]")
	require.Equal(t, []string{"a/z@01", "b/a@03"}, f.listAll(ledger.Query{Filter: f.parseFilter(nil)}))
	require.Equal(t, []string{"a/z@01", "b/a@03"}, f.listAll(ledger.Query{Filter: f.parseFilter(params{"currentState": {"true"}})}))
	all := []string{"a/z@01", "b/a@03", "b/a@02", "b/a@01", "b/b@02", "b/b@01"}
	for _, limit := range []int{1, 2, 3, 5, 6, 7} {
		require.Equal(t, all, f.listAll(ledger.Query{Filter: f.parseFilter(params{"currentState": {"false"}}), Limit: limit}))
	}
	require.ElementsMatch(t, all, f.listAll(ledger.Query{Filter: f.parseFilter(params{"currentState": {"false"}}), AnyOrder: true, Limit: 2}))
	require.Empty(t, f.listAll(ledger.Query{Filter: f.parseFilter(params{"isDeleteMarker": {"true"}})}))
}

// Pages of a list join without gaps. They have tokens instead of page numbers (case FM-91 of the
// original system).
func TestList_ReturnsPages(t *testing.T) {
	f := newFixture(t)
	var want []string
	for i := range 250 {
		f.ingest("b", fmt.Sprintf("k%03d", i), "[C@01]")
		want = append(want, fmt.Sprintf("b/k%03d@01", i))
	}
	for _, limit := range []int{0, 1, 99, 125, 249, 250, 1000} {
		require.Equal(t, want, f.listAll(ledger.Query{Filter: f.parseFilter(nil), Limit: limit}))
	}
	page, err := f.List(t.Context(), ledger.Query{Filter: f.parseFilter(nil)})
	require.NoError(t, err)
	require.Len(t, page.Rows, ledger.DefaultPage)
	page, err = f.List(t.Context(), ledger.Query{Filter: f.parseFilter(params{"bucket": {"none"}})})
	require.NoError(t, err)
	require.Equal(t, ledger.Page{}, page)
	for _, limit := range []int{-1, 1001} {
		_, err := f.List(t.Context(), ledger.Query{Filter: f.parseFilter(nil), Limit: limit})
		require.Equal(t, domain.Invalid, domain.KindOf(err))
	}
}

// If the store can evaluate the filter, List reads only the rows that it returns.
func TestList_ReadsOnlyItsPage(t *testing.T) {
	f := newFixture(t)
	for i := range 300 {
		f.ingest("b", fmt.Sprintf("k%03d", i), "[C@01]", func(e *domain.ObjectEvent) { e.ETag = fmt.Sprintf(`"%d"`, i) })
	}
	for _, tc := range []struct {
		params               params
		want, lists, objects int
		reads                int
	}{
		{params{"bucket": {"b"}}, 10, 1, 10, 0},
		{params{"bucket": {"b"}, "key": {"k1*"}}, 10, 1, 10, 0},
		{params{"bucket": {"b"}, "key": {"k1?0"}}, 10, 4, 100, 0},
		{params{"bucket": {"b"}, "key": {"k100"}}, 1, 0, 0, 1},
		{params{"bucket": {"b"}, "key[]": {"k100", "none", "k002"}}, 2, 0, 0, 3},
		{params{"bucket": {"b"}, "eTag": {"17"}}, 1, 1, 1, 0},
		{params{"bucket": {"b"}, "eTag[]": {`"17"`, "18"}}, 2, 1, 2, 0},
		{params{"bucket": {"b"}, "key[]": {"k29*", "k28*"}}, 10, 4, 100, 0},
		{params{"bucket": {"b"}, "key[and][]": {"k2*", "k29*"}}, 10, 1, 10, 0},
	} {
		f.store.lists, f.store.listed, f.store.reads = 0, 0, 0
		page, err := f.List(t.Context(), ledger.Query{Filter: f.parseFilter(tc.params), Limit: 10})
		require.NoError(t, err)
		require.Len(t, page.Rows, tc.want, "%v", tc.params)
		require.LessOrEqual(t, f.store.lists, tc.lists, "%v", tc.params)
		require.LessOrEqual(t, f.store.listed, tc.objects, "%v", tc.params)
		require.Equal(t, tc.reads, f.store.reads, "%v", tc.params)
	}
}

func TestList_EndsAPageAtItsBudget(t *testing.T) {
	f := newFixture(t)
	for i := range 2100 {
		f.ingest("b", fmt.Sprintf("k%04d", i), "[C@01]")
	}
	f.ingest("b", "many", "[C@01]")
	for _, currentState := range []string{"true", "false"} {
		q := ledger.Query{Filter: f.parseFilter(params{"key": {"*y"}, "currentState": {currentState}})}
		f.store.listed = 0
		page, err := f.List(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, page.Rows)
		require.NotEmpty(t, page.Next)
		require.LessOrEqual(t, f.store.listed, 2000)
		require.Equal(t, []string{"b/many@01"}, f.listAll(q))
	}
}

// Each bucket counts towards the limit of a page, even if no row in the bucket is selected.
func TestListAndCount_EndAPageAfterManyBuckets(t *testing.T) {
	f := newFixture(t)
	const buckets = 450
	for i := range buckets {
		f.ingest(fmt.Sprintf("b%03d", i), "k", "[C@01]")
	}
	f.ingest("z", "my", "[C@01]")
	q := ledger.Query{Filter: f.parseFilter(params{"key": {"*y"}})}
	page, err := f.List(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, page.Rows)
	require.NotEmpty(t, page.Next)
	require.LessOrEqual(t, f.store.lists, 40)
	require.Equal(t, []string{"z/my@01"}, f.listAll(q))

	total, pages := int64(0), 0
	for token := ""; pages == 0 || token != ""; pages++ {
		f.store.counts = 0
		count, err := f.Count(t.Context(), f.parseFilter(nil), token)
		require.NoError(t, err)
		require.LessOrEqual(t, f.store.counts, 200)
		total += count.Rows
		token = count.Next
	}
	require.EqualValues(t, buckets+1, total)
	require.Equal(t, 3, pages)

	f.store.reads = 0
	_, err = f.List(t.Context(), ledger.Query{Filter: f.parseFilter(params{"key": {"none"}})})
	require.NoError(t, err)
	require.Equal(t, buckets+1, f.store.reads, "a key is read, which is cheap")
}

// List and Count select the same rows for each filter (cases FM-93, FM-95 and FM-97 of the original
// system).
func TestFilter_SelectsMatchingRows(t *testing.T) {
	f := newFixture(t)
	add := func(bucket, key string, change func(e *domain.ObjectEvent)) { f.ingest(bucket, key, "[C@01]", change) }
	size := func(n int64) *int64 { return &n }
	add("1", "2", func(e *domain.ObjectEvent) {
		e.Size, e.ETag, e.StorageClass, e.Reason = size(math.MaxInt64), `"tag"`, domain.ClassStandard, domain.CreatedPut
		e.Attributes = `{"top":"value-a","nested":{"a":{"b":7}},"flag":true,"none":null,"list":["x"],"quo\"te's":"q","e":"!$()*+.:<=>?[\\]^{|}-"}`
	})
	add("1", "3", func(e *domain.ObjectEvent) {
		e.Size, e.SHA256, e.StorageClass, e.IngestID = size(0), "sum", domain.ClassGlacier, "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
		e.Attributes = `{"top":"value-b","id":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"}`
	})
	add("1", "4", func(e *domain.ObjectEvent) { e.Attributes = "null" })
	add("2", "prefixoverlapsuffix", func(e *domain.ObjectEvent) {
		e.Time = e.Time.AddDate(1, 0, 0)
		e.LastModified = e.Time
		e.Attributes = `{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":{"j":"deep"}}}}}}}}}}`
	})
	add("2", "Case", func(e *domain.ObjectEvent) { e.ArchiveStatus = "ARCHIVE_ACCESS" })
	for _, tc := range []struct {
		params params
		want   string
	}{
		{params{"bucket": {"1"}, "key": {"2"}}, "2"},
		{params{"bucket": {"1"}, "key": {"9"}}, ""},
		{params{"bucket": {"?"}}, "2 3 4 Case prefixoverlapsuffix"},
		{params{"bucket[]": {"1", "2"}, "bucket[and][]": {"2*", "*"}}, "Case prefixoverlapsuffix"},
		{params{"key[]": {"3", "4"}}, "3 4"},
		{params{"key[or][]": {"3", "4*"}}, "3 4"},
		{params{"key[and][]": {"prefixover*", "*rlapsuffix"}}, "prefixoverlapsuffix"},
		{params{"key[and][]": {"prefixover*", "x*"}}, ""},
		{params{"key[and][]": {"*e*"}, "key[or][]": {"C*", "p*"}}, "Case prefixoverlapsuffix"},
		{params{"key": {"case"}}, ""},
		{params{"key": {"case"}, "caseSensitive": {"false"}}, "Case"},
		{params{"key": {"cAs?"}, "caseSensitive": {"false"}}, "Case"},
		{params{"key": {""}}, ""},
		{params{"versionId": {"null"}}, "2 3 4 Case prefixoverlapsuffix"},
		{params{"versionId": {"n?ll"}, "bucket": {"2"}}, "Case prefixoverlapsuffix"},
		{params{"eventType": {"Created"}, "bucket": {"2"}}, "Case prefixoverlapsuffix"},
		{params{"eventType": {"Deleted"}}, ""},
		{params{"eventTime": {"2026-03-04T05:06:07Z"}}, "2 3 4 Case"},
		{params{"eventTime": {"2026-03-04T06:06:07.000+01:00"}}, "2 3 4 Case"},
		{params{"eventTime": {"2027-*"}}, "prefixoverlapsuffix"},
		{params{"lastModifiedDate": {"*"}}, "prefixoverlapsuffix"},
		{params{"lastModifiedDate": {"2027-03-04T05:06:07Z"}}, "prefixoverlapsuffix"},
		{params{"size": {"9223372036854775807"}}, "2"},
		{params{"size": {"9223372036854775806"}}, ""},
		{params{"size[]": {"0", "00"}}, "3"},
		{params{"eTag": {"tag"}}, "2"},
		{params{"eTag": {`"tag"`}}, "2"},
		{params{"sha256": {"sum"}}, "3"},
		{params{"sha256": {"s*"}}, ""},
		{params{"storageClass[]": {domain.ClassGlacier, domain.ClassStandard}}, "2 3"},
		{params{"storageClass": {""}}, ""},
		{params{"reason": {"CreatedPut"}}, "2"},
		{params{"archiveStatus": {"ARCHIVE_ACCESS"}}, "Case"},
		{params{"ingestId": {"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"}}, "3"},
		{params{"isDeleteMarker": {"false"}, "bucket": {"2"}}, "Case prefixoverlapsuffix"},
		{params{"isAccessible": {"false"}}, "3"},
		{params{"isAccessible": {"true"}, "bucket": {"1"}}, "2 4"},
		{params{"attributes[top]": {"value-a"}}, "2"},
		{params{"attributes[top]": {"value"}}, ""},
		{params{"attributes[top]": {"*a*"}}, "2 3"},
		{params{"attributes[top]": {"*A*"}}, ""},
		{params{"attributes[top]": {"*A*"}, "caseSensitive": {"false"}}, "2 3"},
		{params{"attributes[top][]": {"value-a", "value-b"}}, "2 3"},
		{params{"attributes[top][and][]": {"value-*", "*-b"}}, "3"},
		{params{"attributes[top]": {"value-*"}, "attributes[nested][a][b]": {"7"}}, "2"},
		{params{"attributes[top]": {"value-a"}, "key": {"3"}}, ""},
		{params{"attributes[nested][a]": {"7"}}, ""},
		{params{"attributes[nested][a][b][c]": {"7"}}, ""},
		{params{"attributes[flag]": {"true"}}, "2"},
		{params{"attributes[none]": {"*"}}, ""},
		{params{"attributes[list]": {"*"}}, ""},
		{params{"attributes[missing]": {"*"}}, ""},
		{params{`attributes[quo"te's]`: {"q"}}, "2"},
		{params{"attributes[e]": {`!$()\*+.:<=>\?[\\]^{|}-`}}, "2"},
		{params{"attributes[id]": {"????????-????-????-????-????????????"}}, "3"},
		{params{"attributes[a][b][c][d][e][f][g][h][i][j]": {"deep"}}, "prefixoverlapsuffix"},
	} {
		var keys []string
		for _, row := range f.listAll(ledger.Query{Filter: f.parseFilter(tc.params), Limit: 1}) {
			key, _, _ := strings.Cut(row[2:], "@")
			keys = append(keys, key)
		}
		require.Equal(t, tc.want, strings.Join(keys, " "), "%v", tc.params)
		all := params{"currentState": {"false"}}
		for name, values := range tc.params {
			all[name] = values
		}
		for _, p := range []params{tc.params, all} { // each object has only one row, so every row is current
			count, err := f.Count(t.Context(), f.parseFilter(p), "")
			require.NoError(t, err)
			require.Equal(t, ledger.Count{Rows: int64(len(keys))}, count, "%v", p)
		}
	}
}

func TestCount_UsesTheStoreOrReadsRowsInParts(t *testing.T) {
	f := newFixture(t)
	for i := range 10_050 {
		f.ingest("b", fmt.Sprintf("k%05d", i), "[C@01]")
	}
	count, err := f.Count(t.Context(), f.parseFilter(params{"bucket": {"b*"}, "key": {"k00*"}}), "")
	require.NoError(t, err)
	require.Equal(t, ledger.Count{Rows: 1000}, count)
	require.Equal(t, 1, f.store.counts)
	require.Zero(t, f.store.lists)
	filter := f.parseFilter(params{"key": {"*0"}})
	first, err := f.Count(t.Context(), filter, "")
	require.NoError(t, err)
	require.NotEmpty(t, first.Next)
	second, err := f.Count(t.Context(), filter, first.Next)
	require.NoError(t, err)
	require.Empty(t, second.Next)
	require.EqualValues(t, 1005, first.Rows+second.Rows)
}

func TestFilter_NamesTheInvalidParameter(t *testing.T) {
	for name, tc := range map[string]struct{ value, want string }{
		"unknown":                        {"x", "unknown query parameter"},
		"currentState":                   {"yes", "want true or false"},
		"caseSensitive":                  {"", "want true or false"},
		"size":                           {"-1", "whole number"},
		"size[]":                         {"9223372036854775808", "whole number"},
		"eventTime":                      {"yesterday", "want a time"},
		"eventType":                      {"Other", "want Created or Deleted"},
		"isDeleteMarker":                 {"1", "want true or false"},
		"key":                            {`a\b`, "a backslash may only precede"},
		"attributes":                     {"x", "want the name of an attribute"},
		"attributes[]":                   {"x", "want the name of an attribute"},
		"attributes[or][]":               {"x", "want the name of an attribute"},
		"attributes[a":                   {"x", "square brackets"},
		"attributes[a]b":                 {"x", "square brackets"},
		"attributes[a][][b]":             {"x", "square brackets"},
		"attributes[a[b]]":               {"x", "square brackets"},
		"attributes[a]":                  {`\`, "a backslash may only precede"},
		"attributes" + nested(11):        {"x", "up to 10 levels, got 11"},
		"attributes" + nested(11) + "[]": {"x", "up to 10 levels, got 11"},
		"key[a]":                         {"x", "only attributes have parts"},
		"key[or]":                        {"x", "only attributes have parts"},
	} {
		_, err := ledger.ParseFilter(params{name: {tc.value}})
		require.Equal(t, domain.Invalid, domain.KindOf(err), name)
		require.ErrorContains(t, err, tc.want, name)
	}
	_, err := ledger.ParseFilter(params{"key": {"a", "b"}})
	require.ErrorContains(t, err, "key occurs 2 times; for one of several values, use key[]=")
	_, err = ledger.ParseFilter(params{"key[]": slices.Repeat([]string{"a"}, 101)})
	require.ErrorContains(t, err, "want at most 100")
	_, err = ledger.ParseFilter(params{"attributes" + nested(10): {"x"}, "page": {"x", "y"}}, "page")
	require.NoError(t, err)
}

func nested(depth int) string { return strings.Repeat("[a]", depth) }

func TestToken_OfAnotherQueryIsRefused(t *testing.T) {
	f := newFixture(t)
	for i := range 5 {
		f.ingest("b", fmt.Sprint(i), "[C@01] [D@02] [C@03]")
	}
	q := ledger.Query{Filter: f.parseFilter(params{"bucket": {"b"}}), Limit: 2}
	page, err := f.List(t.Context(), q)
	require.NoError(t, err)
	fails := func(q ledger.Query, want string) {
		_, err := f.List(t.Context(), q)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.ErrorContains(t, err, want)
	}
	fails(ledger.Query{Filter: q.Filter, AnyOrder: true, Token: page.Next}, "of another query")
	fails(ledger.Query{Filter: f.parseFilter(params{"bucket": {"b*"}}), Token: page.Next}, "of another query")
	fails(ledger.Query{Filter: f.parseFilter(params{"bucket": {"b"}, "currentState": {"false"}}), Token: page.Next}, "of another query")
	for _, token := range []string{"x", "!", page.Next + "A", page.Next[:len(page.Next)-4], "bnVsbCB4"} {
		fails(ledger.Query{Filter: q.Filter, Token: token}, "pageToken")
	}
	_, err = f.Count(t.Context(), q.Filter, page.Next)
	require.ErrorContains(t, err, "of another query")
	_, err = f.List(t.Context(), ledger.Query{Filter: q.Filter, Limit: 1, Token: page.Next}) // a token stays valid if the requested page size changes
	require.NoError(t, err)
}

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// The documents of these tests repeat their id as copy and their partition key as own. The engine looks documents up by
// id and partition key, but not by copy and own. A query on c.copy and c.own therefore scans, but must return the same
// results as the query on c.id and c.pk.

// An idFixture is a container whose documents repeat their keys.
type idFixture struct {
	e   *Engine
	c   *Container
	now time.Time
}

// idPolicies are indexing policies under which id and copy are indexed: every policy indexes id, even the last one,
// which does not list it. The last two policies do not index the property n.
var idPolicies = []string{
	`{"includedPaths":[{"path":"/*"},{"path":"/id/?"},{"path":"/copy/?"}]}`,
	`{"includedPaths":[{"path":"/copy/?"},{"path":"/id/?"},{"path":"/kind/?"}],"excludedPaths":[{"path":"/*"}]}`,
	`{"includedPaths":[{"path":"/copy/?"},{"path":"/kind/?"}],"excludedPaths":[{"path":"/*"}]}`,
}

func newIDFixture(t require.TestingT, store disk.Store, policy string, ranges int) *idFixture {
	w := &idFixture{now: time.Unix(1_700_000_000, 0)}
	var err error
	w.e, err = Open(store, Options{Clock: func() time.Time { return w.now }})
	require.NoError(t, err)
	_, err = w.e.CreateDatabase(context.Background(), []byte(`{"id":"db"}`), Throughput{})
	require.NoError(t, err)
	w.c, err = w.e.CreateContainer(context.Background(), "db", []byte(`{"id":"c","defaultTtl":-1,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":`+policy+`}`),
		Throughput{Manual: ranges * throughputPerRange})
	require.NoError(t, err)
	return w
}

var (
	idAlphabet = []string{"a", "b", "ab", "\x00", "é", "𐀀", "z", "|", "0", "9"}
	idKinds    = []string{"x", "y"}
)

func drawID(r *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(idAlphabet), 1, 3).Draw(r, "id"), "")
}

func quoteJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot fail for text and numbers
	}
	return string(b)
}

// writeRandom makes random writes.
func (w *idFixture) writeRandom(r *rapid.T, limit int) {
	for range rapid.IntRange(0, limit).Draw(r, "writes") {
		id, pk := drawID(r), rapid.SampledFrom([]string{"p", "p", "q", "r"}).Draw(r, "partition")
		if rapid.IntRange(0, 4).Draw(r, "write") > 0 {
			w.upsertDocument(r, id, pk)
		} else {
			w.deleteDocument(r, id, pk)
		}
	}
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 1).Draw(r, "seconds")) * time.Second)
	if rapid.IntRange(0, 5).Draw(r, "sweep") == 0 {
		_, err := w.e.Sweep(context.Background(), func(*Container, Partition, Charge) bool { return true })
		require.NoError(r, err)
	}
}

func (w *idFixture) upsertDocument(r *rapid.T, id, pk string) {
	ttl := rapid.SampledFrom([]string{"", "", `,"ttl":3`}).Draw(r, "ttl")
	text := fmt.Sprintf(`{"id":%s,"pk":%q,"copy":%s,"own":%q,"n":%d,"kind":%q,"data":%q%s}`, quoteJSON(id), pk, quoteJSON(id), pk, rapid.IntRange(0, 5).Draw(r, "n"),
		rapid.SampledFrom(idKinds).Draw(r, "kind"), strings.Repeat("d", rapid.SampledFrom([]int{0, 30, maxInlineSize}).Draw(r, "size")), ttl)
	doc, err := w.c.ParseDocument([]byte(text), true)
	require.NoError(r, err)
	_, err = w.e.Write(context.Background(), w.c, doc.Partition, []Op{{Kind: Upsert, Doc: doc}}, Consistency{})
	require.NoError(r, err)
}

func (w *idFixture) deleteDocument(r *rapid.T, id, pk string) {
	_, err := w.e.Write(context.Background(), w.c, Partition(`["`+pk+`"]`), []Op{{Kind: Delete, ID: id}}, Consistency{})
	require.NoError(r, err)
}

// replaceLast sometimes deletes the last document of a page. It sometimes also creates a new document with this id.
func (w *idFixture) replaceLast(r *rapid.T, p *pageReader) {
	var at pagePosition
	if p.done || at.parseToken(p.req) != nil || len(at.keys) == 0 || at.keys[0].Kind != query.String {
		return
	}
	if id := string(at.keys[0].Text); rapid.Bool().Draw(r, "delete the last") {
		w.deleteDocument(r, id, "p")
		if rapid.Bool().Draw(r, "create it again") {
			w.upsertDocument(r, id, "p")
		}
	}
}

// drawConfining returns a random condition on ids, in which NAME stands for the path.
func drawConfining(r *rapid.T, params map[string]query.Value) string {
	param := func() string {
		name := fmt.Sprintf("@p%d", len(params))
		text := quoteJSON(drawID(r))
		switch rapid.IntRange(0, 11).Draw(r, "value") {
		case 0:
			text = rapid.SampledFrom([]string{"5", "null", "true", `""`, "[1]"}).Draw(r, "other value")
		case 1:
			text = quoteJSON(rapid.SampledFrom(idAlphabet).Draw(r, "short id"))
		}
		params[name] = query.ParseValue([]byte(text))
		return name
	}
	switch rapid.IntRange(0, 6).Draw(r, "condition") {
	case 0:
		return "NAME BETWEEN " + param() + " AND " + param()
	case 1:
		return "STARTSWITH(NAME, " + param() + ")"
	case 2:
		return param() + rapid.SampledFrom([]string{" < ", " >= "}).Draw(r, "operator") + "NAME"
	}
	return "NAME" + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= ", " > ", " < ", " = "}).Draw(r, "operator") + param()
}

// drawQuery returns a random query and its parameters. NAME stands for the path of the id.
func drawQuery(r *rapid.T, simple bool) (string, map[string]query.Value) {
	params := map[string]query.Value{}
	var conditions []string
	for range rapid.IntRange(0, 2).Draw(r, "confining") {
		conditions = append(conditions, drawConfining(r, params))
	}
	others := []string{"c.kind = 'x'", "c.n > 2", "c.kind >= 'x' AND c.n != 3", "(NAME = 'a' OR c.n = 1)", "NOT (NAME > 'b')", "CONTAINS(NAME, 'a')", "PART IN ('p', 'q')", "(PART = 'r' OR PART = 'q' OR PART = 'none')", "PART IN (1, 'q', null)"}
	for range rapid.IntRange(0, 1).Draw(r, "others") {
		conditions = append(conditions, rapid.SampledFrom(others).Draw(r, "other"))
	}
	where := ""
	if len(conditions) > 0 {
		where = " WHERE " + strings.Join(rapid.Permutation(conditions).Draw(r, "conditions"), " AND ")
	}
	selected := rapid.SampledFrom([]string{"*", "*", "VALUE NAME", "NAME AS x, c.n", "VALUE c.missing"}).Draw(r, "selected")
	if simple {
		return "SELECT " + selected + " FROM c" + where, params
	}
	order := rapid.SampledFrom([]string{"", " ORDER BY NAME", " ORDER BY NAME", " ORDER BY NAME DESC", " ORDER BY NAME ASC", " ORDER BY c.kind"}).Draw(r, "order")
	count, part := rapid.IntRange(0, 12).Draw(r, "count"), rapid.IntRange(0, 4).Draw(r, "part")
	switch rapid.IntRange(0, 14).Draw(r, "form") {
	case 0, 7:
		return fmt.Sprintf("SELECT TOP %d %s FROM c%s%s", count, selected, where, order), params
	case 1, 8:
		return fmt.Sprintf("SELECT %s FROM c%s%s OFFSET %d LIMIT %d", selected, where, order, part, count), params
	case 2:
		return "SELECT VALUE COUNT(1) FROM c" + where, params
	case 3:
		return "SELECT DISTINCT VALUE c.n FROM c" + where, params
	case 4:
		return "SELECT c.n, x FROM c JOIN x IN (SELECT VALUE 1)" + where, params
	}
	return "SELECT " + selected + " FROM c" + where + order, params
}

// A pageReader reads the pages of one query.
type pageReader struct {
	req  QueryRequest
	done bool
}

func (w *idFixture) newReader(r *rapid.T, text string, params map[string]query.Value, req QueryRequest) *pageReader {
	var err error
	req.Query, err = w.e.ParseQuery(context.Background(), text, params)
	require.NoError(r, err, text)
	req.Text = text
	return &pageReader{req: req}
}

// readPage reads the next page.
func (p *pageReader) readPage(r *rapid.T, w *idFixture) Page {
	page, err := w.e.Query(context.Background(), w.c, p.req)
	require.NoError(r, err, p.req.Text)
	p.req.Continuation, p.done = page.Continuation, page.Continuation == ""
	return page
}

// TestQuery_ByIDReturnsWhatAScanReturns compares pages that the id index serves with pages of a scan: their bytes,
// their charges, and whether another page follows. It makes random writes between the pages.
func TestQuery_ByIDReturnsWhatAScanReturns(t *testing.T) {
	for name, open := range map[string]func(*rapid.T) disk.Store{
		"memory": func(*rapid.T) disk.Store { return disk.NewMemory() },
		"disk": func(r *rapid.T) disk.Store {
			store, err := disk.OpenUnsynced(t.TempDir(), disk.System{})
			require.NoError(r, err)
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				store := open(r)
				defer func() { require.NoError(r, store.Close()) }()
				w := newIDFixture(r, store, rapid.SampledFrom(idPolicies).Draw(r, "policy"), rapid.IntRange(1, 2).Draw(r, "ranges"))
				w.writeRandom(r, 40)
				for range 4 {
					compareWithScan(r, w)
				}
				census, err := w.e.Check(func(problem string) { r.Error(problem) })
				require.NoError(r, err)
				require.Zero(r, census.Problems)
			})
		})
	}
}

func compareWithScan(r *rapid.T, w *idFixture) {
	req := QueryRequest{AllowCross: true, MaxItems: rapid.SampledFrom([]int{-1, 1, 1, 2, 2, 3, 7}).Draw(r, "page")}
	simple := false
	switch rapid.IntRange(0, 5).Draw(r, "scope") {
	case 0:
		simple = true
	case 1:
		req.Range = &w.c.ranges[rapid.IntRange(0, len(w.c.ranges)-1).Draw(r, "range")]
	default:
		req.Partition, req.Scoped = `["p"]`, true
	}
	text, params := drawQuery(r, simple)
	indexed := w.newReader(r, strings.NewReplacer("NAME", "c.id", "PART", "c.pk").Replace(text), params, req)
	scanned := w.newReader(r, strings.NewReplacer("NAME", "c.copy", "PART", "c.own").Replace(text), params, req)
	for !scanned.done {
		got, want := indexed.readPage(r, w), scanned.readPage(r, w)
		require.Equal(r, string(want.JSON), string(got.JSON), text)
		require.Equal(r, want.Count, got.Count, text)
		require.Equal(r, scanned.done, indexed.done, text)
		if !namesIDs(indexed.req.Query) { // a query that names ids is charged only for the documents with these ids
			require.Equal(r, want.Charge, got.Charge, text)
			require.Equal(r, want.Loaded, got.Loaded, text)
		}
		w.replaceLast(r, scanned)
		w.writeRandom(r, 4)
	}
}

func namesIDs(q *query.Query) bool { return findNamedIDs(q) != nil }

// TestQuery_ByIDReadsOnlyItsPage counts how many documents the pages of ordered queries read.
func TestQuery_ByIDReadsOnlyItsPage(t *testing.T) {
	e, c := newFilledContainer(t)
	const p = Partition(`["p"]`)
	for _, tc := range []struct {
		query            string
		in               Partition
		page             int
		scanned, results int // totals of all pages
	}{
		{"SELECT TOP 5 * FROM c ORDER BY c.id", p, -1, 5, 5},
		{"SELECT TOP 5 * FROM c ORDER BY c.id DESC", p, -1, 5, 5},
		{"SELECT * FROM c ORDER BY c.id", p, 10, 109, 100}, // each page also reads the first document of the next page
		{"SELECT * FROM c WHERE c.id > '50' ORDER BY c.id", p, -1, 53, 53},
		{"SELECT * FROM c WHERE c.id > '50' AND c.id <= '52' ORDER BY c.id DESC", p, -1, 2, 2},
		{"SELECT * FROM c WHERE STARTSWITH(c.id, '7') AND c.n > 80 ORDER BY c.id", p, -1, 11, 5},
		{"SELECT * FROM c WHERE STARTSWITH(c.id, '7')", p, -1, 11, 11},
		{"SELECT * FROM c WHERE c.id BETWEEN '1' AND '12'", p, -1, 4, 4},
		{"SELECT * FROM c WHERE c.id > 5 ORDER BY c.id", p, -1, 0, 0},
		{"SELECT * FROM c WHERE c.id > 'x' AND c.id < 'a' ORDER BY c.id", p, -1, 0, 0},
		{"SELECT VALUE COUNT(1) FROM c WHERE c.id >= '90'", p, -1, 10, 1},
		{"SELECT * FROM c WHERE STARTSWITH(c.id, '7')", "", -1, 33, 33},
		{"SELECT * FROM c WHERE c.id = '7'", "", -1, 3, 3},
		{"SELECT * FROM c WHERE c.pk IN ('p', 'r', 'none')", "", -1, 200, 200},
		{"SELECT * FROM c WHERE c.pk IN ('p', 'r') AND c.id < '11'", "", -1, 6, 6},
		{"SELECT * FROM c WHERE c.pk IN ('p', 'r') AND c.id IN ('5', '6')", "", -1, 4, 4},
		{"SELECT * FROM c WHERE c.id >= '5' AND c.id < '52' AND c.id <= '50' AND c.id > '49'", p, -1, 2, 2},
		{"SELECT * FROM c ORDER BY c.id OFFSET 3 LIMIT 2", p, -1, 5, 2},
	} {
		results, scanned := readAllPages(t, e, c, tc.query, tc.in, tc.page)
		require.Equal(t, []int{tc.results, tc.scanned}, []int{len(results), scanned}, tc.query)
	}
}

// If no index answers a condition, all documents of the range are loaded and charged, as in a scan of the partition.
func TestQuery_ByIDLoadsTheRangeForOtherConditions(t *testing.T) {
	e, c := newFilledContainer(t)
	q, err := e.ParseQuery(t.Context(), "SELECT * FROM c WHERE STARTSWITH(c.id, '7') AND c.n != 80 ORDER BY c.id", nil)
	require.NoError(t, err)
	page, err := e.Query(t.Context(), c, QueryRequest{Query: q, Partition: `["p"]`, Scoped: true, MaxItems: 2})
	require.NoError(t, err)
	require.Equal(t, 2, page.Count)
	require.Equal(t, 11, page.Loaded)
	require.Equal(t, 11, page.Scanned)
}

// TestQuery_ByIDContinuesAmongNewDocuments deletes and creates documents near the end of a page. If the last returned
// document is deleted and created again, the next page must return the new document.
func TestQuery_ByIDContinuesAmongNewDocuments(t *testing.T) {
	for order, want := range map[string][][]string{"ASC": {{"b", "d"}, {"d", "e", "f"}}, "DESC": {{"f", "d"}, {"d", "c", "b"}}} {
		e, c := testContainer(t, `{"includedPaths":[{"path":"/*"}]}`)
		write := func(kind Kind, ids ...string) {
			for _, id := range ids {
				doc, err := c.ParseDocument(fmt.Appendf(nil, `{"id":%q,"pk":"p"}`, id), false)
				require.NoError(t, err)
				_, err = e.Write(t.Context(), c, doc.Partition, []Op{{Kind: kind, ID: id, Doc: doc}}, Consistency{})
				require.NoError(t, err)
			}
		}
		write(Create, "f", "b", "d")
		text := "SELECT VALUE c.id FROM c ORDER BY c.id " + order
		q, err := e.ParseQuery(t.Context(), text, nil)
		require.NoError(t, err)
		req := QueryRequest{Query: q, Text: text, Partition: `["p"]`, Scoped: true, MaxItems: 2}
		for i, ids := range want {
			page, err := e.Query(t.Context(), c, req)
			require.NoError(t, err)
			require.Contains(t, string(page.JSON), `"Documents":`+quoteJSON(ids), order)
			write(Delete, "d")
			write(Create, "d", "c", "e")
			req.Continuation, req.MaxItems = page.Continuation, -1
			require.Equal(t, i == 1, page.Continuation == "", order)
		}
	}
}

// TestQuery_RangesTakeTurnsWithScanning uses ranges of more than firstWalkEntries documents. They are at the start or
// at the end of the insertion order, or spread over it.
func TestQuery_RangesTakeTurnsWithScanning(t *testing.T) {
	const documents = 6000
	for name, number := range map[string]func(i int) int{
		"in order": func(i int) int { return i },
		"reversed": func(i int) int { return documents - 1 - i },
		"mixed":    func(i int) int { return i * 7919 % documents },
	} {
		t.Run(name, func(t *testing.T) {
			e, c := testContainer(t, `{"includedPaths":[{"path":"/*"}]}`)
			var all []string // all ids, in the order of insertion
			for i := 0; i < documents; i += 100 {
				var ops []Op
				for j := i; j < i+100; j++ {
					id := fmt.Sprintf("%05d", number(j))
					all = append(all, id)
					doc, err := c.ParseDocument(fmt.Appendf(nil, `{"id":%q,"pk":"p"}`, id), false)
					require.NoError(t, err)
					ops = append(ops, Op{Kind: Create, Doc: doc})
				}
				_, err := e.Write(t.Context(), c, `["p"]`, ops, Consistency{})
				require.NoError(t, err)
			}
			for _, low := range []int{0, 10, 2000, 4900, documents - 1100, documents - 3} {
				want := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id < fmt.Sprintf("%05d", low) })
				for i := range want {
					want[i] = quoteJSON(want[i])
				}
				for _, page := range []int{-1, 700} {
					got, scanned := readAllPages(t, e, c, fmt.Sprintf("SELECT VALUE c.id FROM c WHERE c.id >= '%05d'", low), `["p"]`, page)
					require.Equal(t, want, got)
					if page < 0 {
						require.LessOrEqual(t, scanned, len(want)+len(want)/walkEntriesPerScan+1, "low %d", low)
					}
				}
			}
		})
	}
}

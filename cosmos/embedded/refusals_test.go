package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

const (
	inP      = "x-ms-documentdb-partitionkey"
	inRange  = "x-ms-documentdb-partitionkeyrangeid"
	isQuery  = "x-ms-documentdb-query"
	isBatch  = "x-ms-cosmos-is-batch-request"
	isAtomic = "x-ms-cosmos-batch-atomic"
	colls    = "/dbs/db/colls"
)

// TestRefusals_HaveStatusAndSubstatusOfCosmos sends invalid requests, most of which azcosmos cannot send, and checks
// their status and substatus.
func TestRefusals_HaveStatusAndSubstatusOfCosmos(t *testing.T) {
	one := []string{inP, `["p"]`}
	with := func(header ...string) []string { return append(header, one...) }
	query := []string{isQuery, "True", "Content-Type", "application/query+json"}
	for _, tc := range []struct {
		name      string
		want, sub int
		method    string
		path      string
		kind      string
		link      string
		body      string
		header    []string
	}{
		{"a document that is not there", 404, 0, "GET", docsPath + "/z", "docs", containerLink + "/docs/z", "", one},
		{"a document of a container that is not there", 404, 1003, "GET", colls + "/x/docs/a", "docs", "dbs/db/colls/x/docs/a", "", one},
		{"a document of a database that is not there", 404, 1003, "GET", "/dbs/x/colls/c/docs/a", "docs", "dbs/x/colls/c/docs/a", "", one},
		{"a container that is not there", 404, 0, "GET", colls + "/x", "colls", "dbs/db/colls/x", "", nil},
		{"the containers of no database", 404, 0, "GET", "/dbs/x/colls", "colls", "dbs/x", "", nil},
		{"the ranges of no container", 404, 0, "GET", colls + "/x/pkranges", "pkranges", "dbs/db/colls/x", "", nil},
		{"an offer that is not there", 404, 0, "GET", "/offers/zzzz", "offers", "zzzz", "", nil},
		{"a session that is yet to come", 404, 1002, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", with("x-ms-session-token", "0:-1#99999")},
		{"a session token that is none", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", with("x-ms-session-token", "soon")},
		{"a range that is gone, in a query", 410, 1002, "POST", docsPath, "docs", containerLink, `{"query":"SELECT * FROM c"}`, append(query, inRange, "7")},
		{"a range that is gone, in a feed", 410, 1002, "GET", docsPath, "docs", containerLink, "", []string{"A-IM", "Incremental Feed", inRange, "7"}},
		{"a range that is gone, in bulk", 410, 1002, "POST", docsPath, "docs", containerLink, "[]", []string{isBatch, "True", isAtomic, "False", inRange, "7"}},

		{"no partition key", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", nil},
		{"a partition key that is no array", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", []string{inP, `"p"`}},
		{"a partition key that is no JSON", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", []string{inP, `[`}},
		{"a partition key with an object", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", []string{inP, `[{"a":1}]`}},
		{"a partition key with two values", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", []string{inP, `["p","q"]`}},
		{"a query over a key with two values", 400, 0, "POST", docsPath, "docs", containerLink, `{"query":"SELECT * FROM c"}`, append(query, inP, `["p","q"]`)},
		{"a query over a key without values", 400, 0, "POST", docsPath, "docs", containerLink, `{"query":"SELECT * FROM c"}`, append(query, inP, `[]`)},
		{"a body that is no object", 400, 0, "POST", docsPath, "docs", containerLink, `[]`, one},
		{"an empty id", 400, 0, "POST", docsPath, "docs", containerLink, `{"id":"","pk":"p"}`, one},
		{"a key that is an array", 400, 0, "POST", docsPath, "docs", containerLink, `{"id":"b","pk":["p"]}`, one},
		{"a number beyond a double", 400, 0, "POST", docsPath, "docs", containerLink, `{"id":"b","pk":"p","n":1e999}`, one},
		{"a create if none matches", 400, 0, "POST", docsPath, "docs", containerLink, `{"id":"b","pk":"p"}`, with("If-None-Match", "*")},
		{"an index directive", 400, 0, "POST", docsPath, "docs", containerLink, `{"id":"b","pk":"p"}`, with("x-ms-indexing-directive", "Exclude")},
		{"a stronger consistency", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", with("x-ms-consistency-level", "Strong")},
		{"a trigger", 400, 0, "POST", docsPath, "docs", containerLink, `{"id":"b","pk":"p"}`, with("x-ms-documentdb-post-trigger-include", "t")},
		{"a query that does not say so", 400, 0, "POST", docsPath, "docs", containerLink, `{"query":"SELECT * FROM c"}`, with(isQuery, "True")},
		{"a query without text", 400, 0, "POST", docsPath, "docs", containerLink, `{}`, append(query, one...)},
		{"a parameter without @", 400, 0, "POST", docsPath, "docs", containerLink, `{"query":"SELECT 1","parameters":[{"name":"x","value":1}]}`, append(query, one...)},
		{"a query of databases that counts", 400, 0, "POST", "/dbs", "dbs", "", `{"query":"SELECT VALUE COUNT(1) FROM c"}`, query},
		{"a page that is no number", 400, 0, "GET", docsPath, "docs", containerLink, "", []string{"A-IM", "Incremental Feed", "x-ms-max-item-count", "all"}},
		{"a feed from nowhere", 400, 0, "GET", docsPath, "docs", containerLink, "", []string{"A-IM", "Incremental Feed", "If-None-Match", `"x"`}},
		{"a feed from no date", 400, 0, "GET", docsPath, "docs", containerLink, "", []string{"A-IM", "Incremental Feed", "If-Modified-Since", "yesterday"}},
		{"a feed of one document", 400, 0, "GET", docsPath + "/a", "docs", containerLink + "/docs/a", "", with("A-IM", "Incremental Feed")},
		{"a patch without a path", 400, 0, "PATCH", docsPath + "/a", "docs", containerLink + "/docs/a", `{"operations":[{"op":"set","value":1}]}`, one},
		{"a patch without a value", 400, 0, "PATCH", docsPath + "/a", "docs", containerLink + "/docs/a", `{"operations":[{"op":"set","path":"/n"}]}`, one},
		{"a patch that moves from nowhere", 400, 0, "PATCH", docsPath + "/a", "docs", containerLink + "/docs/a", `{"operations":[{"op":"move","path":"/n"}]}`, one},
		{"a patch by a word", 400, 0, "PATCH", docsPath + "/a", "docs", containerLink + "/docs/a", `{"operations":[{"op":"incr","path":"/n","value":"1"}]}`, one},
		{"a patch of nothing", 400, 0, "PATCH", docsPath + "/a", "docs", containerLink + "/docs/a", `{"operations":[]}`, one},
		{"a batch of nothing", 400, 0, "POST", docsPath, "docs", containerLink, "[]", with(isBatch, "True", isAtomic, "True", "x-ms-cosmos-batch-ordered", "True")},
		{"a batch that is no list", 400, 0, "POST", docsPath, "docs", containerLink, "{}", with(isBatch, "True", isAtomic, "True", "x-ms-cosmos-batch-ordered", "True")},
		{"a batch in any order", 400, 0, "POST", docsPath, "docs", containerLink, "[]", with(isBatch, "True", isAtomic, "True")},
		{"a container of two paths that are not hierarchical", 400, 0, "POST", colls, "colls", "dbs/db", `{"id":"n","partitionKey":{"paths":["/a","/b"],"kind":"Hash"}}`, nil},
		{"a container by the elements of an array", 400, 0, "POST", colls, "colls", "dbs/db", `{"id":"n","partitionKey":{"paths":["/a/[]"]}}`, nil},
		{"a container under another name", 400, 0, "PUT", colls + "/c", "colls", containerLink, `{"id":"n","partitionKey":{"paths":["/pk"],"version":2}}`, nil},
		{"a database without a name", 400, 0, "POST", "/dbs", "dbs", "", `{"id":""}`, nil},
		{"a throughput that is no number", 400, 0, "POST", "/dbs", "dbs", "", `{"id":"n"}`, []string{"x-ms-offer-throughput", "much"}},

		{"a container replaced that is not there", 404, 0, "PUT", colls + "/n", "colls", "dbs/db/colls/n", `{"id":"n","partitionKey":{"paths":["/pk"],"version":2}}`, nil},
		{"a container replaced that has changed", 412, 0, "PUT", colls + "/c", "colls", containerLink, `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`, []string{"If-Match", `"x"`}},
		{"a container deleted that has changed", 412, 0, "DELETE", colls + "/c", "colls", containerLink, "", []string{"If-Match", `"x"`}},
		{"a database deleted that has changed", 412, 0, "DELETE", "/dbs/db", "dbs", "dbs/db", "", []string{"If-Match", `"x"`}},

		{"a change of the account", 405, 0, "POST", "/", "", "", "", nil},
		{"a change of all databases", 405, 0, "PUT", "/dbs", "dbs", "", "", nil},
		{"a change of a database", 405, 0, "PUT", "/dbs/db", "dbs", "dbs/db", "", nil},
		{"a change of all containers", 405, 0, "DELETE", colls, "colls", "dbs/db", "", nil},
		{"a patch of a container", 405, 0, "PATCH", colls + "/c", "colls", containerLink, "", nil},
		{"a change of the ranges", 405, 0, "PUT", colls + "/c/pkranges", "pkranges", containerLink, "", nil},
		{"a deletion of all documents", 405, 0, "DELETE", docsPath, "docs", containerLink, "", one},
		{"a post to a document", 405, 0, "POST", docsPath + "/a", "docs", containerLink + "/docs/a", "", one},
		{"a deletion of all offers", 405, 0, "DELETE", "/offers", "offers", "", "", nil},
		{"a resource of another kind", 400, 0, "GET", "/media/x", "media", "media/x", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			engine, c := openEngine(t, embedded.Options{Consistency: "Session"})
			createDocs(t, c, newDoc("a", 1))
			answer, body := sendRequest(t, engine, signedRequest(t, engine, tc.method, tc.path, tc.kind, tc.link, tc.body, tc.header...))
			require.Equal(t, tc.want, answer.StatusCode, body)
			sub := answer.Header.Get("x-ms-substatus")
			if tc.sub == 0 {
				require.Empty(t, sub)
			} else {
				require.Equal(t, strconv.Itoa(tc.sub), sub)
			}
			require.Contains(t, body, `"code":"`)
			require.NotContains(t, body, `"code":""`)
			require.NotEmpty(t, answer.Header.Get("x-ms-request-charge"))
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			require.Len(t, queryAll(t, c, pk, "SELECT * FROM c", nil)[0], 1, "nothing has changed")
		})
	}
}

func TestReplaceThroughput_ChecksTheEtag(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	read, err := c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	known := &azcosmos.ThroughputOptions{IfMatchEtag: &read.ETag}
	_, err = c.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(500), known)
	require.NoError(t, err)
	_, err = c.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(600), known)
	require.Equal(t, 412, clientStatus(t, nil, err))
	read, err = c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	manual, _ := read.ThroughputProperties.ManualThroughput()
	require.EqualValues(t, 500, manual)
}

// TestCollide_RefusesAWriteWithoutExecutingIt checks that the write fails with 449, which clients do not retry.
func TestCollide_RefusesAWriteWithoutExecutingIt(t *testing.T) {
	collide := false
	engine, c := openEngine(t, embedded.Options{Collide: func() bool { return collide }})
	createDocs(t, c, newDoc("a", 1))
	collide = true
	writes := map[string]func(context.Context) (*http.Response, error){
		"create": func(ctx context.Context) (*http.Response, error) {
			r, err := c.CreateItem(ctx, pk, newDoc("b", 1), nil)
			return r.RawResponse, err
		},
		"patch": func(ctx context.Context) (*http.Response, error) {
			r, err := c.PatchItem(ctx, pk, "a", patchOf(func(p *azcosmos.PatchOperations) { p.AppendSet("/n", 2) }), nil)
			return r.RawResponse, err
		},
		"delete": func(ctx context.Context) (*http.Response, error) {
			r, err := c.DeleteItem(ctx, pk, "a", nil)
			return r.RawResponse, err
		},
		"batch": func(ctx context.Context) (*http.Response, error) {
			b := c.NewTransactionalBatch(pk)
			b.DeleteItem("a", nil)
			r, err := c.ExecuteTransactionalBatch(ctx, b, nil)
			return r.RawResponse, err
		},
		"bulk": func(context.Context) (*http.Response, error) {
			r, _ := sendRequest(t, engine, signedRequest(t, engine, "POST", docsPath, "docs", containerLink, `[{"operationType":"Delete","partitionKey":"[\"p\"]","id":"a"}]`, isBatch, "True"))
			return r, nil
		},
	}
	for name, write := range writes {
		before := engine.Requests()
		answer, err := write(t.Context())
		require.Equal(t, 449, clientStatus(t, answer, err), name)
		require.EqualValues(t, 1, engine.Requests()-before, "%s is not sent again", name)
		if err != nil {
			require.ErrorContains(t, err, `"RetryWith"`)
		}
	}
	require.Equal(t, [][]string{{`{"id":"a","n":1}`}}, queryAll(t, c, pk, "SELECT c.id, c.n FROM c", nil))
	collide = false
	for _, name := range []string{"create", "patch", "delete"} {
		_, err := writes[name](t.Context())
		require.NoError(t, err, name)
	}
}

func TestTimeFunctions_UseTheClockOfTheEngine(t *testing.T) {
	now := time.Date(2031, time.May, 4, 3, 2, 1, 0, time.UTC)
	_, c := openEngine(t, embedded.Options{Clock: func() time.Time { return now }})
	createDocs(t, c, newDoc("a", 1))
	require.Equal(t, [][]string{{fmt.Sprintf(`["2031-05-04T03:02:01.0000000Z",%d]`, now.UnixMilli())}},
		queryAll(t, c, pk, "SELECT VALUE [GetCurrentDateTime(), GetCurrentTimestamp()] FROM c", nil))
	require.Equal(t, [][]string{{`"a"`}}, queryAll(t, c, pk, "SELECT VALUE c.id FROM c WHERE c._ts * 1000 = GetCurrentTimestamp()", nil))
	later := patchOf(func(p *azcosmos.PatchOperations) {
		p.AppendSet("/n", 2)
		p.SetCondition("from c where c._ts * 1000 < GetCurrentTimestamp()")
	})
	_, err := c.PatchItem(t.Context(), pk, "a", later, nil)
	require.Equal(t, 412, clientStatus(t, nil, err))
	now = now.Add(time.Second)
	_, err = c.PatchItem(t.Context(), pk, "a", later, nil)
	require.NoError(t, err)
}

func TestClosedEngine_Answers503OverHTTP(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	handler := engine.Handler()
	ask := func() int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, signedRequest(t, engine, "GET", "/", "", "", ""))
		return answer.Code
	}
	require.Equal(t, 200, ask())
	require.NoError(t, engine.Close())
	require.Equal(t, 503, ask())
	_, err = engine.Sweep(t.Context())
	require.ErrorIs(t, err, embedded.ErrClosed)
	_, err = engine.Check(func(string) {})
	require.ErrorIs(t, err, embedded.ErrClosed)
	require.ErrorIs(t, engine.Export(io.Discard), embedded.ErrClosed)
}

package embedded_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// The tests in this file send requests that azcosmos never sends, but clients for other languages do.

func TestBulk_ExecutesOperationsIndependently(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	bulk := func(body string) (int, []struct {
		StatusCode int `json:"statusCode"`
	},
	) {
		answer, text := sendRequest(t, engine, signedRequest(t, engine, "POST", docsPath, "docs", containerLink, body, "x-ms-cosmos-is-batch-request", "True",
			"x-ms-cosmos-batch-atomic", "False", "x-ms-cosmos-batch-continue-on-error", "True", "x-ms-documentdb-partitionkeyrangeid", "0"))
		var results []struct {
			StatusCode int `json:"statusCode"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &results), text)
		return answer.StatusCode, results
	}
	status, results := bulk(`[
		{"operationType":"Create","partitionKey":"[\"p\"]","resourceBody":{"id":"a","pk":"p"}},
		{"operationType":"Create","partitionKey":"[\"q\"]","resourceBody":{"id":"b","pk":"q"}},
		{"operationType":"Create","partitionKey":"[\"p\"]","resourceBody":{"id":"d","pk":"q"}},
		{"operationType":"Patch","partitionKey":"[\"p\"]","id":"a","resourceBody":{"operations":[{"op":"incr","path":"/n","value":4}]}},
		{"operationType":"Delete","partitionKey":"[\"p\"]","id":"missing"},
		{"operationType":"Read","partitionKey":"[\"q\"]","id":"b"}]`)
	require.Equal(t, 207, status)
	var got []int
	for _, r := range results {
		got = append(got, r.StatusCode)
	}
	require.Equal(t, []int{409, 201, 400, 200, 404, 200}, got)
	require.Equal(t, [][]string{{"5"}}, queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil))
	status, _ = bulk(`[{"operationType":"Upsert","partitionKey":"[\"p\"]","resourceBody":{"id":"a","pk":"p"}}]`)
	require.Equal(t, 200, status)
}

func TestQueryPlan_NamesTheRangesOfAQuery(t *testing.T) {
	engine, _ := openEngine(t, embedded.Options{})
	for _, tc := range []struct {
		query  string
		status int
		ranges string
	}{
		{"SELECT VALUE c.n FROM c WHERE c.n > 1", 200, `[{"isMaxInclusive":false,"isMinInclusive":true,"max":"FF","min":""}]`},
		{
			"SELECT * FROM c WHERE c.pk = 'asdf' ORDER BY c.n", 200,
			`[{"isMaxInclusive":true,"isMinInclusive":true,"max":"208BF1D598F5B63AD5520F04FE58C5E8","min":"208BF1D598F5B63AD5520F04FE58C5E8"}]`,
		},
		{"SELECT * FROM c ORDER BY c.n", 400, ""},
		{"SELECT nonsense", 400, ""},
	} {
		body := fmt.Sprintf(`{"query":%q}`, tc.query)
		answer, text := sendRequest(t, engine, signedRequest(t, engine, "POST", docsPath, "docs", containerLink, body, "Content-Type", "application/query+json",
			"x-ms-cosmos-is-query-plan-request", "True", "x-ms-cosmos-supported-query-features", "None"))
		require.Equal(t, tc.status, answer.StatusCode, text)
		if tc.status == 200 {
			require.Contains(t, text, `"queryRanges":`+tc.ranges)
			require.Contains(t, text, fmt.Sprintf(`"hasSelectValue":%t`, tc.query[7:12] == "VALUE"))
		}
	}
}

func TestRequests_NeedNoHeaderThatTheNodeClientOmits(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	for _, tc := range []struct {
		method, path, kind, link, body string
		header                         []string
		want                           string
	}{
		{"GET", "/dbs/db", "dbs", "dbs/db", "", []string{"x-ms-useragent", "a client"}, `"id":"db"`},
		{"POST", "/dbs", "dbs", "", `{"query":"SELECT * FROM d WHERE d.id = 'db'"}`, []string{"x-ms-documentdb-isquery", "true"}, `"_count":1`},
		{"POST", "/offers", "offers", "", `{"query":"SELECT * FROM o"}`, []string{"x-ms-documentdb-isquery", "true"}, `"Offers":[{`},
		{"PATCH", docsPath + "/a", "docs", containerLink + "/docs/a", `[{"op":"incr","path":"/n","value":4}]`, []string{"x-ms-documentdb-partitionkey", `["p"]`}, `"n":5`},
		{
			"POST", docsPath, "docs", containerLink, `[{"operationType":"Read","id":"a"}]`,
			[]string{"x-ms-documentdb-partitionkey", `["p"]`, "x-ms-cosmos-is-batch-request", "true", "x-ms-cosmos-batch-atomic", "true"},
			`"statusCode":200`,
		},
	} {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, tc.method, tc.path, tc.kind, tc.link, tc.body, tc.header...))
		require.Equal(t, 200, answer.StatusCode, body)
		require.Contains(t, body, tc.want)
	}
	answer, body := sendRequest(t, engine, signedRequest(t, engine, "POST", "/"+containerLink+"/operations/partitionkeydelete", "colls", containerLink, ""))
	require.Equal(t, 400, answer.StatusCode)
	require.Contains(t, body, "is not supported")
}

func TestFeeds_AreReadWithoutAQuery(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1), newDoc("b", 2))
	for path, want := range map[[3]string]string{
		{"/dbs", "dbs", ""}: `"Databases":[{"id":"db"`, {"/dbs/db/colls", "colls", "dbs/db"}: `"DocumentCollections":[{`,
		{"/offers", "offers", ""}: `"Offers":[{`, {docsPath, "docs", containerLink}: `"_count":2}`,
	} {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "GET", path[0], path[1], path[2], ""))
		require.Equal(t, 200, answer.StatusCode, body)
		require.Contains(t, body, want)
	}
}

func TestToken_OfAnEmulatorOnlyIsAccepted(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	part := base64.RawURLEncoding.EncodeToString
	good := part([]byte(`{"alg":"RS256"}`)) + "." + part(fmt.Appendf(nil, `{"nbf":%d,"exp":%d}`, time.Now().Unix(), time.Now().Unix()+60)) + "." + part([]byte(engine.Key()))
	old := part([]byte(`{}`)) + "." + part([]byte(`{"exp":1}`)) + "." + part([]byte(engine.Key()))
	foreign := part([]byte(`{}`)) + "." + part([]byte(`{}`)) + "." + part([]byte("another key"))
	for header, want := range map[string]int{
		"type=aad&ver=1.0&sig=" + good: 200, "type%3Daad%26ver%3D1.0%26sig%3D" + good: 200,
		"type=aad&ver=1.0&sig=" + old: 401, "type=aad&ver=1.0&sig=" + foreign: 401, "type=aad&ver=1.0&sig=x.y": 401, "type=aad&ver=2.0&sig=" + good: 401,
	} {
		req := readRequest(t, engine)
		req.Header.Set("Authorization", header)
		answer, body := sendRequest(t, engine, req)
		require.Equal(t, want, answer.StatusCode, body)
	}
}

func TestEndpointOptions_DecidesWhichIDsAreAccepted(t *testing.T) {
	engine, _ := openEngine(t, embedded.Options{})
	do := func(d embedded.EndpointOptions, method, path, link, body string) int {
		req := signedRequest(t, engine, method, path, "docs", link, body, "x-ms-documentdb-partitionkey", `["p"]`)
		answer := httptest.NewRecorder()
		engine.HandlerOf(d).ServeHTTP(answer, req)
		return answer.Code
	}
	for _, tc := range []struct {
		gateway embedded.Gateway
		id      string
		want    [3]int // expected statuses of create, read and delete
	}{
		{embedded.Strict, "a b", [3]int{201, 200, 204}},
		{embedded.Strict, "a ", [3]int{400, 404, 404}},
		{embedded.Strict, "a/b", [3]int{400, 404, 404}},
		{embedded.Routing, "a?ü", [3]int{201, 200, 204}},
		{embedded.Routing, "b ", [3]int{201, 401, 401}},
		{embedded.Routing, "b/c", [3]int{201, 401, 401}},
		{embedded.Routing, "b%20", [3]int{201, 401, 401}},
		{embedded.Routing, "b\tc", [3]int{201, 400, 400}},
		{embedded.Compute, "d ", [3]int{201, 200, 204}},
		{embedded.Compute, "d/\\#e%20\n", [3]int{201, 200, 204}},
	} {
		d := embedded.EndpointOptions{Gateway: tc.gateway}
		body, err := json.Marshal(map[string]string{"id": tc.id, "pk": "p"})
		require.NoError(t, err)
		path, link := docsPath+"/"+url.PathEscape(tc.id), containerLink+"/docs/"+tc.id
		got := [3]int{do(d, "POST", docsPath, containerLink, string(body)), do(d, "GET", path, link, ""), do(d, "DELETE", path, link, "")}
		require.Equal(t, tc.want, got, "%q through %v", tc.id, tc.gateway)
	}
	req := signedRequest(t, engine, "GET", "/", "", "", "")
	answer := httptest.NewRecorder()
	engine.HandlerOf(embedded.EndpointOptions{Advertise: "127.0.0.1:8081"}).ServeHTTP(answer, req)
	require.Equal(t, http.StatusOK, answer.Code)
	require.Contains(t, answer.Body.String(), `"databaseAccountEndpoint":"http://127.0.0.1:8081/"`)
}

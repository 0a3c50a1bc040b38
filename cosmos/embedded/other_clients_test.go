package embedded_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// TestResponses_NameTheirParent checks the headers that the Node client needs to store session tokens.
func TestResponses_NameTheirParent(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	container, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	rid := container.ContainerProperties.ResourceID
	for name, req := range map[string]*http.Request{
		"a document": readRequest(t, engine),
		"a query":    queryRequest(t, engine, "SELECT * FROM c", "[]")(),
	} {
		answer, body := sendRequest(t, engine, req)
		require.Equal(t, 200, answer.StatusCode, body)
		require.Equal(t, rid, answer.Header.Get("x-ms-content-path"), name)
		require.Equal(t, containerLink, answer.Header.Get("x-ms-alt-content-path"), name)
	}
	answer, _ := sendRequest(t, engine, signedRequest(t, engine, "GET", "/"+containerLink, "colls", containerLink, ""))
	require.Equal(t, "dbs/db", answer.Header.Get("x-ms-alt-content-path"))
	require.Equal(t, "AAAAAQ==", answer.Header.Get("x-ms-content-path"))
	require.Contains(t, answer.Header.Get("x-ms-resource-quota"), "documentSize=10240;")
	require.Contains(t, answer.Header.Get("x-ms-resource-usage"), "documentsSize=0;")
}

// TestSelf_OfEveryResourceIsServed follows the _self links, as the .NET client does. The links consist of resource ids;
// the signature contains the last id in lower case.
func TestSelf_OfEveryResourceIsServed(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	inPartition := []string{inP, `["p"]`}
	read := func(path, kind, link string, header ...string) (status int, properties map[string]any) {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "GET", path, kind, link, "", header...))
		_ = json.Unmarshal([]byte(body), &properties)
		return answer.StatusCode, properties
	}
	for _, tc := range []struct {
		path, kind, link string
		header           []string
	}{
		{"/dbs/db", "dbs", "dbs/db", nil},
		{"/dbs/db/colls/c", "colls", containerLink, nil},
		{docsPath + "/a", "docs", containerLink + "/docs/a", inPartition},
	} {
		status, named := read(tc.path, tc.kind, tc.link, tc.header...)
		require.Equal(t, 200, status, tc.path)
		self, rid := named["_self"].(string), named["_rid"].(string)
		status, followed := read("/"+self, tc.kind, strings.ToLower(rid), tc.header...)
		require.Equal(t, 200, status, self)
		require.Equal(t, named, followed)
		status, _ = read("/"+self, tc.kind, rid+"x", tc.header...)
		require.Equal(t, 401, status, "another signature")
	}
	_, container := read("/dbs/db/colls/c", "colls", containerLink)
	self, rid := "/"+container["_self"].(string), container["_rid"].(string)
	write := func(method, path, link, body string) int {
		answer, _ := sendRequest(t, engine, signedRequest(t, engine, method, path, "docs", link, body, inPartition...))
		return answer.StatusCode
	}
	require.Equal(t, 201, write("POST", self+"docs", strings.ToLower(rid), `{"id":"b","pk":"p"}`))
	status, ranges := read(self+"pkranges", "pkranges", strings.ToLower(rid))
	require.Equal(t, 200, status)
	require.Equal(t, rid, ranges["_rid"])
	_, b := read(docsPath+"/b", "docs", containerLink+"/docs/b", inPartition...)
	require.Equal(t, 204, write("DELETE", "/"+b["_self"].(string), strings.ToLower(b["_rid"].(string)), ""))
	require.Equal(t, 404, write("DELETE", "/"+b["_self"].(string), strings.ToLower(b["_rid"].(string)), ""))
	status, _ = read("/dbs/AAAAfw==/", "dbs", "aaaafw==")
	require.Equal(t, 404, status)
}

// TestHeaders_AreRefusedIfTheyChangeTheResponse also checks that all remaining headers are ignored.
func TestHeaders_AreRefusedIfTheyChangeTheResponse(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	container, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	for _, tc := range []struct {
		name, value string
		want        int
	}{
		{"x-ms-cosmos-supported-serialization-formats", "JsonText,CosmosBinary", 200},
		{"x-ms-cosmos-supported-serialization-formats", "CosmosBinary", 400},
		{"x-ms-cosmos-query-optimisticdirectexecute", "True", 200},
		{"x-ms-enumeration-direction", "Reverse", 400},
		{"x-ms-cosmos-changefeed-wire-format-version", "2021-09-15", 400},
		{"x-ms-cosmos-collection-truncate", "false", 200},
		{"x-ms-cosmos-intended-collection-rid", container.ContainerProperties.ResourceID, 200},
		{"x-ms-cosmos-intended-collection-rid", "AAAAAYAAAH8=", 400},
	} {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "GET", docsPath+"/a", "docs", containerLink+"/docs/a", "", inP, `["p"]`, tc.name, tc.value))
		require.Equal(t, tc.want, answer.StatusCode, "%s: %s", tc.name, body)
		if tc.want == 400 && !strings.HasSuffix(tc.name, "collection-rid") {
			require.Contains(t, body, tc.name)
		}
	}
}

// TestMissing_NamesTheResourceAndTheOperation checks the text of a 404 response, which gocosmos parses.
func TestMissing_NamesTheResourceAndTheOperation(t *testing.T) {
	engine, _ := openEngine(t, embedded.Options{})
	for _, tc := range []struct{ method, path, kind, link, want string }{
		{"GET", docsPath + "/z", "docs", containerLink + "/docs/z", "ResourceType: Document, OperationType: Read"},
		{"DELETE", docsPath + "/z", "docs", containerLink + "/docs/z", "ResourceType: Document, OperationType: Delete"},
		{"GET", "/dbs/db/colls/x/docs/z", "docs", "dbs/db/colls/x/docs/z", "ResourceType: Collection, OperationType: Read"},
		{"GET", "/dbs/x/colls", "colls", "dbs/x", "ResourceType: Collection, OperationType: ReadFeed"},
		{"GET", "/offers/zzzz", "offers", "zzzz", "ResourceType: Offer, OperationType: Read"},
	} {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, tc.method, tc.path, tc.kind, tc.link, "", inP, `["p"]`))
		require.Equal(t, 404, answer.StatusCode)
		require.Contains(t, body, tc.want)
	}
}

// TestContainers_HaveTheDefaultsOfCosmos checks the defaults of properties that a request to create a container omits,
// and which properties are refused.
func TestContainers_HaveTheDefaultsOfCosmos(t *testing.T) {
	engine, _ := openEngine(t, embedded.Options{})
	create := func(members string) (int, string) {
		answer, body := sendRequest(t, engine, signedRequest(t, engine, "POST", "/dbs/db/colls", "colls", "dbs/db", `{"id":"n","partitionKey":{"paths":["/pk"],"kind":"Hash"}`+members+`}`))
		_, _ = sendRequest(t, engine, signedRequest(t, engine, "DELETE", "/dbs/db/colls/n", "colls", "dbs/db/colls/n", ""))
		return answer.StatusCode, body
	}
	const excluded = `{"path":"/\"_etag\"/?"}`
	for members, want := range map[string][]string{
		"": {
			`"conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`,
			`"geospatialConfig":{"type":"Geography"}`, `"excludedPaths":[` + excluded + `]`,
		},
		`,"geospatialConfig":{"type":"Geometry"}`:                                                           {`"geospatialConfig":{"type":"Geometry"}`},
		`,"indexingPolicy":{"excludedPaths":[{"path":"/*"}]}`:                                               {`"excludedPaths":[{"path":"/*"},` + excluded + `]`, `"indexingMode":"consistent"`},
		`,"indexingPolicy":{"includedPaths":[{"path":"/*"}],"excludedPaths":[` + excluded + `]}`:            {`"excludedPaths":[` + excluded + `]`},
		`,"indexingPolicy":{"indexingMode":"lazy","includedPaths":[{"path":"/","indexes":[]}],"version":2}`: {`"indexingMode":"lazy"`, `"path":"/"`},
		`,"indexingPolicy":{"indexingMode":"none"}`:                                                         {`"indexingPolicy":{"indexingMode":"none"}`},
		`,"computedProperties":[]`:                                                                          {`"computedProperties":[]`},
		`,"defaultTtl":-1`:                                                                                  {`"defaultTtl":-1`},
	} {
		status, body := create(members)
		require.Equal(t, 201, status, "%s: %s", members, body)
		for _, text := range want {
			require.Contains(t, body, text, members)
		}
	}
	for members, want := range map[string]string{
		`,"computedProperties":[{"name":"n","query":"SELECT VALUE LOWER(c.a) FROM c"}]`: "computedProperties",
		`,"defaultTtl":null`: "defaultTtl",
	} {
		status, body := create(members)
		require.Equal(t, 400, status, body)
		require.Contains(t, body, want)
	}
}

// TestOffers_HaveTheMembersThatClientsRead checks the JSON of an offer, and migrates between manual throughput and
// autoscale.
func TestOffers_HaveTheMembersThatClientsRead(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	read, err := c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	require.NotNil(t, read.ThroughputProperties)
	change := func(body string, header ...string) string {
		_, list := sendRequest(t, engine, signedRequest(t, engine, "GET", "/offers", "offers", "", ""))
		var offers struct{ Offers []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(list), &offers))
		rid := offers.Offers[0]["_rid"].(string)
		answer, text := sendRequest(t, engine, signedRequest(t, engine, "PUT", "/offers/"+rid+"/", "offers", strings.ToLower(rid), body, header...))
		require.Equal(t, 200, answer.StatusCode, text)
		return text
	}
	require.Contains(t, change(`{"content":{"offerThroughput":600}}`), `"offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":600}`)
	automatic := change(`{"content":{"offerThroughput":-1}}`, "x-ms-cosmos-migrate-offer-to-autopilot", "true")
	require.Contains(t, automatic, `"offerAutopilotSettings":{"maxThroughput":1000}`)
	require.Contains(t, automatic, `"offerThroughput":100`)
	require.Contains(t, change(`{"content":{}}`, "x-ms-cosmos-migrate-offer-to-manual-throughput", "true"), `"offerThroughput":1000`)
	_, err = c.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(400), nil)
	require.NoError(t, err)
}

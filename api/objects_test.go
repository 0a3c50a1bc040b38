package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// An objectFixture is a server with objects in memory, which only its own machine can reach.
type objectFixture struct {
	*hubFixture
	objects *memory.Objects
}

func serveObjects(t *testing.T, change ...func(*api.Options, *hub.Options)) *objectFixture {
	t.Helper()
	store := memory.NewObjects()
	service := ledger.New(ledger.Ports{Objects: store}, ledger.Options{JSONPatch: jsonpatch.Apply})
	private := func(o *api.Options, _ *hub.Options) {
		o.Objects, o.NoProxies, o.IsOwnHost = service, true, func(string) bool { return true }
	}
	return &objectFixture{serve(t, append([]func(*api.Options, *hub.Options){private}, change...)...), store}
}

// ingestScript ingests the events of a script one by one. change may modify each event.
func (f *objectFixture) ingestScript(bucket, key, script string, change ...func(e *domain.ObjectEvent)) {
	f.t.Helper()
	name, err := domain.ParseObjectName(bucket, key)
	require.NoError(f.t, err)
	for _, call := range objecttest.Calls(script) {
		for _, e := range call {
			for _, c := range change {
				c(&e)
			}
			_, err := f.objects.Ingest(f.t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
			require.NoError(f.t, err)
		}
	}
}

// An objectList is a page of rows.
type objectList struct {
	Results []map[string]any
	Links   struct{ Next *string }
}

// list requests a page of rows.
func (f *objectFixture) list(path string) (list objectList) {
	f.t.Helper()
	require.NoError(f.t, json.Unmarshal([]byte(f.do("GET", path, "").wants(200).body), &list))
	return list
}

// ids returns the ids of the rows of an object, the newest first.
func (f *objectFixture) ids(key string) (ids []string) {
	f.t.Helper()
	for _, row := range f.list("/v1/objects?currentState=false&key=" + url.QueryEscape(key)).Results {
		ids = append(ids, row["id"].(string))
	}
	return ids
}

func TestObjects_ARowHasAllKnownFacts(t *testing.T) {
	f := serveObjects(t)
	f.ingestScript("b", "é", "[C@C1/v, C@C1/v]", func(e *domain.ObjectEvent) {
		size := int64(math.MaxInt64)
		e.ObjectFacts = domain.ObjectFacts{
			Size: &size, ETag: `"e"`, SHA256: "sum", StorageClass: domain.ClassStandard, ArchiveStatus: "ARCHIVE_ACCESS", LastModified: e.Time.Add(1e6),
			Reason: domain.CreatedPut, IngestID: "id", Attributes: `{"n":9007199254740993}`,
		}
	})
	const row = `{"id":"AQFiAsOpAQEBdhIwMDU1QUVENkRDRDkwMjgxRTQ","bucket":"b","key":"é","versionId":"v","sequencer":"0055AED6DCD90281E4","eventType":"Created",` +
		`"eventTime":"2026-03-04T05:06:07Z","size":9223372036854775807,"eTag":"\"e\"","sha256":"sum","lastModifiedDate":"2026-03-04T05:06:07.001Z",` +
		`"storageClass":"STANDARD","archiveStatus":"ARCHIVE_ACCESS","reason":"CreatedPut","ingestId":"id","attributes":{"n":9007199254740993},` +
		`"isDeleteMarker":false,"isCurrentState":true,"isAccessible":true,"isDoubtful":false,"numberDuplicateEvents":1}`
	require.Equal(t, `{"results":[`+row+`],"links":{"next":null}}`+"\n", f.do("GET", "/v1/objects", "").wants(200).body)
	require.Equal(t, row+"\n", f.do("GET", "/v1/objects/AQFiAsOpAQEBdhIwMDU1QUVENkRDRDkwMjgxRTQ", "").wants(200).body)
	f.ingestScript("b", "unknown", "[C@-!]")
	require.Contains(t, f.do("GET", "/v1/objects?key=unknown", "").wants(200).body, `"sequencer":"000000000000000000000000000000-0100000000000000","eventType":"Created",`+
		`"eventTime":null,"size":null,"eTag":null,"sha256":null,"lastModifiedDate":null,"storageClass":null,"archiveStatus":null,"reason":null,"ingestId":null,"attributes":null,`)
}

func TestObjects_LinksLeadThroughAllPages(t *testing.T) {
	f := serveObjects(t)
	for i := range 25 {
		f.ingestScript("b", fmt.Sprintf("k%02d&", i), "[C@01]")
	}
	for _, query := range []string{"limit=10&key%5B%5D=k1%2A&key[]=k0*&key[]=k2*", "limit=7&order=any", "currentState=false&limit=25", "order=key&limit=1"} {
		seen := map[any]bool{}
		path := "/v1/objects?" + query
		for {
			list := f.list(path)
			for _, row := range list.Results {
				require.False(t, seen[row["key"]])
				seen[row["key"]] = true
			}
			if list.Links.Next == nil {
				break
			}
			path = *list.Links.Next
			require.Contains(t, path, "limit=")
		}
		require.Len(t, seen, 25, query)
	}
}

func TestObjects_AreCounted(t *testing.T) {
	f := serveObjects(t)
	require.JSONEq(t, `{"count":0,"exact":true,"links":{"next":null}}`, f.do("GET", "/v1/objects/count", "").wants(200).body)
	f.ingestScript("b", "k1", "[C@01] [D@02] [C@03]")
	f.ingestScript("b", "k2", "[C@01]")
	require.JSONEq(t, `{"count":2,"exact":true,"links":{"next":null}}`, f.do("GET", "/v1/objects/count", "").wants(200).body)
	require.JSONEq(t, `{"count":1,"exact":true,"links":{"next":null}}`, f.do("GET", "/v1/objects/count?key=*1", "").wants(200).body)
	require.JSONEq(t, `{"count":4,"exact":true,"links":{"next":null}}`, f.do("GET", "/v1/objects/count?currentState=false", "").wants(200).body)
	for i := range 10_000 {
		f.ingestScript("c", fmt.Sprint(i), "[C@01]")
	}
	var first struct {
		Count int
		Exact bool
		Links struct{ Next string }
	}
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", "/v1/objects/count?key=*1", "").wants(200).body), &first))
	require.False(t, first.Exact)
	second := f.do("GET", first.Links.Next, "").wants(200).body
	require.JSONEq(t, fmt.Sprintf(`{"count":%d,"exact":false,"links":{"next":null}}`, 1001-first.Count), second)
}

func TestObjects_TheHistoryHasPagesAndPairs(t *testing.T) {
	f := serveObjects(t)
	f.ingestScript("b", "k", "[D@02] [C@01] [C@03]")
	ids := f.ids("k")
	require.Len(t, ids, 3)
	path := "/v1/objects/" + ids[1] + "/history"
	list := f.list(path + "?limit=2")
	require.Equal(t, []any{"03", "02"}, []any{list.Results[0]["sequencer"], list.Results[1]["sequencer"]})
	list = f.list(*list.Links.Next)
	require.Equal(t, "01", list.Results[0]["sequencer"])
	require.Nil(t, list.Links.Next)
	require.Len(t, f.list(path+"?paired=false").Results, 3)
	list = f.list(path + "?paired=true")
	require.Len(t, list.Results, 2)
	require.Nil(t, list.Results[0]["deleted"])
	require.Equal(t, ids[0], list.Results[0]["created"].(map[string]any)["id"])
	require.Equal(t, ids[2], list.Results[1]["created"].(map[string]any)["id"])
	require.Equal(t, ids[1], list.Results[1]["deleted"].(map[string]any)["id"])
	require.EqualValues(t, 2, list.Results[1]["numberReordered"])
	for query, want := range map[string]string{
		"?paired=1": "paired: want true or false", "?paired=true&limit=1": "limit: paired=true returns all pairs", "?limit=0": "limit: want a whole number of 1 to 1000",
		"?pageToken=x": "pageToken: want the one in links.next", "?x=1": "Unknown query parameter",
	} {
		require.Contains(t, f.do("GET", path+query, "").problem(400, "invalid").Detail, want)
	}
}

func TestObjects_ABadQueryIsRefused(t *testing.T) {
	f := serveObjects(t)
	f.ingestScript("b", "k", "[C@01]")
	f.ingestScript("b", "l", "[C@01]")
	other := *f.list("/v1/objects?limit=1").Links.Next
	for query, want := range map[string]string{
		"page=2":                     "page: pages have no numbers. The next one is at links.next of each page, whose pageToken says where it begins; limit is the size of a page.",
		"rowsPerPage=0":              "rowsPerPage: pages have no numbers.",
		"limit=1001":                 "limit: want a whole number of 1 to 1000",
		"limit=1&limit=2":            "Query parameter limit occurs 2 times",
		"order=size":                 "order: want key or any",
		"key=a&key=b":                "key occurs 2 times; for one of several values, use key[]=",
		"buckets=b":                  "unknown query parameter \"buckets\"; known are archiveStatus,",
		"key=%5Ca":                   "a backslash may only precede",
		"key=%zz":                    "The query is malformed",
		"attributes[a]=%5C":          "attributes[a]: a backslash may only precede",
		"size=9223372036854775808":   "size: want a whole number of bytes",
		"currentState=maybe":         "currentState: want true or false",
		"bucket=b&" + other[12:]:     "pageToken: it is of another query",
		"pageToken=AAAA":             "pageToken: want the one in links.next",
		"attributes[a]=&attributes=": "attributes: want the name of an attribute",
	} {
		require.Contains(t, f.do("GET", "/v1/objects?"+query, "").problem(400, "invalid").Detail, want, query)
	}
	require.Contains(t, f.do("GET", "/v1/objects/count?limit=1", "").problem(400, "invalid").Detail, "unknown query parameter \"limit\"")
	require.Len(t, f.list("/v1/objects?key="+strings.Repeat("*", 1000)).Results, 2)
	require.Empty(t, f.list("/v1/objects?key="+strings.Repeat("*a", 1000)).Results)
	require.Equal(t, "GET, PATCH", f.do("DELETE", "/v1/objects/x", "").wants(405).header.Get("Allow"))
}

func TestObjects_AnInvalidIDIsRefused(t *testing.T) {
	f := serveObjects(t)
	f.ingestScript("b", "k", "[C@01]")
	unknown := ledger.RowID{Row: domain.ObjectRowID{Type: domain.ObjectCreated, Sequencer: "02"}}
	name, err := domain.ParseObjectName("b", "k")
	require.NoError(t, err)
	unknown.Name = name
	for _, tail := range []string{"", "/history"} {
		require.Contains(t, f.do("GET", "/v1/objects/x"+tail, "").problem(400, "invalid").Detail, "object id: want the id of an object or a row, as a list has it")
		f.do("GET", "/v1/objects/"+unknown.String()+tail, "").problem(404, "not-found")
	}
	auth := []string{"Authorization", "Bearer " + token}
	f.do("PATCH", "/v1/objects/x", "[]", auth...).problem(400, "invalid")
	f.do("PATCH", "/v1/objects/"+unknown.String(), "[]", auth...).problem(404, "not-found")
}

func TestObjects_ReadersNeedATokenUnlessTheHubIsPrivate(t *testing.T) {
	for _, change := range []func(*api.Options, *hub.Options){
		func(o *api.Options, _ *hub.Options) { o.NoProxies = false },
		func(o *api.Options, _ *hub.Options) { o.IsOwnHost = nil },
	} {
		f := serveObjects(t, change)
		f.ingestScript("b", "k", "[C@01]")
		for _, path := range []string{"/v1/objects", "/v1/objects/count", "/v1/objects/AQFiAWsBAQRudWxsAjAx", "/v1/objects/AQFiAWsBAQRudWxsAjAx/history"} {
			f.do("GET", path, "", "Authorization", "").problem(401, "missing-token")
			f.do("GET", path, "", "Authorization", "Bearer "+token).wants(200)
		}
	}
	serveObjects(t).do("GET", "/v1/objects", "", "Authorization", "").wants(200)
	serveObjects(t).do("PATCH", "/v1/objects/AQFiAWsBAQRudWxsAjAx", "[]", "Authorization", "").problem(401, "missing-token")
	withoutStore := serveObjects(t, func(o *api.Options, _ *hub.Options) { o.Objects = nil })
	withoutStore.do("GET", "/v1/objects", "").problem(503, "not-provisioned")
}

func TestObjects_ARowIsPatched(t *testing.T) {
	f := serveObjects(t)
	f.ingestScript("b", "k", "[C@01] [C@02]")
	ids := f.ids("k")
	patch := func(id, body string, headers ...string) domainAnswer {
		return f.do("PATCH", "/v1/objects/"+id, body, append(headers, "Authorization", "Bearer "+token)...)
	}
	patched := patch(ids[0], `[{"op": "add", "path": "/lane", "value": 9007199254740993}]`, "Content-Type", "application/json-patch+json").wants(200).body
	require.Contains(t, patched, `"attributes":{"lane":9007199254740993}`)
	require.Equal(t, patched, f.do("GET", "/v1/objects/"+ids[0], "").wants(200).body)
	require.Contains(t, patch(ids[1], `{"ingestId": [{"op": "add", "path": "/", "value": "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"}]}`).wants(200).body, `"ingestId":"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"`)
	require.Len(t, f.list("/v1/objects?attributes[lane]=9007199254740993").Results, 1)

	p := patch(ids[0], `[{"op": "add", "path": "/x", "value": 1}, {"op": "remove", "path": "/lane"}]`).problem(400, "invalid")
	require.Equal(t, "Nothing was changed, because of what errors names.", p.Detail)
	require.Equal(t, []string{"/1/op"}, p.pointers())
	p = patch(ids[0], `{"attributes": [{"op": "add", "path": "/lane", "value": 1}]}`).problem(400, "invalid")
	require.Equal(t, []string{"/attributes/0"}, p.pointers())
	require.Equal(t, "Nothing was changed: want JSON.", patch(ids[0], `[`).problem(400, "invalid").Detail)
	require.Equal(t, patched, f.do("GET", "/v1/objects/"+ids[0], "").wants(200).body)
	require.Equal(t, "application/json-patch+json, application/json", patch(ids[0], `[]`, "Content-Type", "text/plain").wants(415).header.Get("Accept-Patch"))
	patch(ids[0], `"`+strings.Repeat("x", 1<<16)+`"`).problem(413, "body-too-large")
}

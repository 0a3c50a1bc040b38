package steps_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// In the catalog, the writes by which a Peek repairs entries and a sweep removes entries differ
// only in their conditions. NameOf must distinguish them.
func TestNameOf_DistinguishesSweepAndPeek(t *testing.T) {
	for _, tc := range []struct {
		method, key, condition string
		want                   steps.Name
	}{
		{http.MethodDelete, "actor|Charges", "", steps.Remove},
		{http.MethodDelete, "actor|Charges", `"etag"`, steps.Mend},
		{http.MethodPut, "actor|Charges", `"etag"`, steps.Mend},
		{http.MethodPut, "|sweep", `"etag"`, steps.TakeTurn},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://x/dbs/messagehub/colls/catalog/docs/id", strings.NewReader("{}"))
		require.NoError(t, err)
		req.Header.Set("x-ms-documentdb-partitionkey", `["`+tc.key+`"]`)
		req.Header.Set("If-Match", tc.condition)
		require.Equal(t, tc.want, steps.NameOf(req), tc)
		require.Equal(t, tc.want, steps.NameOf(req), "the body can be read again")
	}
}

// A sweep and a Dequeue both set a time to live on closed bundles. NameOf must distinguish them.
func TestNameOf_DistinguishesExpiryAndDequeue(t *testing.T) {
	for body, want := range map[string]steps.Name{
		`[{"operationType":"Patch","resourceBody":{"operations":[{"op":"set","path":"/ttl","value":60}]}}]`:                                                 steps.Expire,
		`[{"operationType":"Patch","resourceBody":{"operations":[{"op":"set","path":"/expires","value":60}]}}]`:                                             steps.Expire,
		`[{"operationType":"Delete","id":"b"},{"operationType":"Create","resourceBody":{"kind":"notice","audience":"watchers of removal"}}]`:                steps.RemoveBundle,
		`[{"operationType":"Patch","resourceBody":{"operations":[{"op":"set","path":"/state","value":"dequeued"},{"op":"set","path":"/ttl","value":60}]}}]`: steps.Dequeue,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://x/dbs/messagehub/colls/bundles/docs", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("x-ms-cosmos-is-batch-request", "True")
		require.Equal(t, want, steps.NameOf(req))
	}
}

// Surveys use the same containers as Saves and Peeks. NameOf must return separate names for their
// requests.
func TestNameOf_KnowsRequestsOfTheSurvey(t *testing.T) {
	for _, tc := range []struct {
		method, container, key, feed string
		want                         steps.Name
	}{
		{http.MethodGet, "cabinet", "|survey", "", steps.ReadSurvey},
		{http.MethodPost, "cabinet", "|survey", "", steps.Survey},
		{http.MethodGet, "catalog", "", "Incremental Feed", steps.ReadFeed},
		{http.MethodGet, "bundles", "", "Incremental Feed", steps.ReadFeed},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "https://x/dbs/messagehub/colls/"+tc.container+"/docs", strings.NewReader("{}"))
		require.NoError(t, err)
		req.Header.Set("x-ms-documentdb-partitionkey", `["`+tc.key+`"]`)
		if tc.feed != "" {
			req.Header.Set("A-IM", tc.feed)
		}
		require.Equal(t, tc.want, steps.NameOf(req), tc)
	}
}

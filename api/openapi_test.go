package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
)

func TestTheDocumentListsExactlyTheRoutes(t *testing.T) {
	var served []string
	err := chi.Walk(api.New(api.Options{}).Handler().(chi.Router), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+route)
		return nil
	})
	require.NoError(t, err)
	var documented []string
	doc, _ := document()
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	require.Equal(t, served, documented)
}

func TestTheDocumentHasTheVersionThatReadyzReports(t *testing.T) {
	doc, _ := document()
	require.Equal(t, api.ContractVersion, doc.Info.Version)
}

func TestTheDocumentListsExactlyTheProblems(t *testing.T) {
	doc, _ := document()
	var documented []string
	for _, typ := range doc.Components.Schemas["Problem"].Value.Properties["type"].Value.Enum {
		documented = append(documented, strings.TrimPrefix(typ.(string), "urn:messagehub:problem:"))
	}
	slices.Sort(documented)
	require.Equal(t, slices.Sorted(maps.Keys(api.ProblemStatuses())), documented)
}

func TestTheDocumentIsServedInBothForms(t *testing.T) {
	f := serve(t)
	var fromJSON map[string]any
	require.NoError(t, json.Unmarshal([]byte(f.do("GET", "/openapi.json", "").wants(200).body), &fromJSON))
	require.Equal(t, "3.1.0", fromJSON["openapi"])
	text := f.do("GET", "/openapi.yaml", "").wants(200).body
	require.True(t, strings.HasPrefix(text, "openapi: 3.1.0\n"))
	require.Equal(t, len(fromJSON["paths"].(map[string]any)), strings.Count(text, "\n  /"))
}

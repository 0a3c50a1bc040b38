package objects

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// observePatches returns a store with an applied patch, and an observer that expects another one.
func observePatches(t *testing.T) *observed {
	t.Helper()
	o := newObserved(t, "[C@10/1+10] [C@20/2+20] [C@30/3+30]")
	n := o.Expect(Patch{Attributes: map[string]string{"a": "1", "b": `{"c":2}`}})
	require.Zero(t, o.Applied(n))
	_, err := o.store.Amend(t.Context(), o.nameOf(), domain.ObjectRowID{}, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
		facts.Attributes = `{"a":1,"b":{"c":2}}`
		return facts, nil
	})
	require.NoError(t, err)
	require.Positive(t, o.reached["a row was patched"])
	require.Equal(t, 1, o.Applied(n))
	o.Expect(Patch{Attributes: map[string]string{"d": "1", "e": "2"}})
	o.Expect(Patch{IngestID: "id"})
	return o
}

func TestObserver_FindsEachViolationOfPatches(t *testing.T) {
	row := func(docs map[string]members, i int) members {
		return docs[idOf("key")]["rows"].([]any)[i].(members)
	}
	for _, tc := range []struct {
		name string
		edit func(docs map[string]members)
	}{
		{"half a patch", func(docs map[string]members) { row(docs, 1)["attributes"] = `{"a":1,"b":{"c":2},"d":1}` }},
		{"a patch that removes", func(docs map[string]members) { row(docs, 1)["attributes"] = `{"a":1,"d":1,"e":2}` }},
		{"a patch that replaces", func(docs map[string]members) { row(docs, 1)["attributes"] = `{"a":1,"b":7,"d":1,"e":2}` }},
		{"a patch and more", func(docs map[string]members) { row(docs, 1)["attributes"] = `{"a":1,"b":{"c":2},"d":1,"e":2,"f":3}` }},
		{"a patch of two rows", func(docs map[string]members) {
			row(docs, 0)["attributes"] = `{"d":1,"e":2}`
			row(docs, 1)["attributes"] = `{"a":1,"b":{"c":2},"d":1,"e":2}`
		}},
		{"attributes that are no object", func(docs map[string]members) { row(docs, 1)["attributes"] = `[]` }},
		{"an ingest id that was not requested", func(docs map[string]members) { row(docs, 1)["ingestId"] = "another" }},
		{"an ingest id and attributes", func(docs map[string]members) {
			row(docs, 1)["ingestId"], row(docs, 1)["attributes"] = "id", `{"a":1,"b":{"c":2},"d":1,"e":2}`
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observePatches(t)
			require.ErrorContains(t, o.Commit(o.editDocument(t, tc.edit)), "L10: ")
		})
	}
	for name, edit := range map[string]func(row members){
		"attributes": func(row members) { row["attributes"] = `{"a":1,"b":{"c":2},"e":2,"d":1}` },
		"ingest id":  func(row members) { row["ingestId"] = "id" },
	} {
		t.Run("a whole patch of "+name, func(t *testing.T) {
			o := observePatches(t)
			require.NoError(t, o.Commit(o.editDocument(t, func(docs map[string]members) {
				edit(row(docs, 1))
				docs[idOf("key")]["current"] = row(docs, 1)
			})))
		})
	}
}

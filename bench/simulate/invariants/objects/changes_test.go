package objects

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
)

// observeWatched returns a store with a watched object that was changed. Its changes are published.
func observeWatched(t *testing.T) *observed {
	t.Helper()
	o := newObserved(t, "[C@10/1]")
	r := domain.ObjectResourceOf(o.nameOf())
	for range 2 {
		_, err := o.store.MarkWatched(t.Context(), r, false)
		require.NoError(t, err)
	}
	o.ingestEvents("[C@20/1] [C@20/1] [D@15/1] [D@30/1] [C@40/1]")
	require.Equal(t, 2, o.reached["a watched object was changed"])
	_, err := o.store.MarkWatched(t.Context(), r, false)
	require.NoError(t, err)
	left, err := o.store.Changes(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, left, 2)
	for _, c := range left {
		require.NoError(t, o.store.RemoveChange(t.Context(), c))
	}
	return o
}

func TestObserver_AcceptsCommitsOfWatchedObjects(t *testing.T) {
	o := observeWatched(t)
	require.NoError(t, o.Commit(o.editDocument(t, func(map[string]members) {})))
}

func TestObserver_FindsEachViolationOfAWatch(t *testing.T) {
	object := func(docs map[string]members) members { return docs[idOf("key")] }
	const last = 2
	store := func(docs map[string]members, number int, event string) {
		id := fmt.Sprintf("-c.hash.%020d", number)
		name, err := domain.ParseObjectName("bucket", "key")
		require.NoError(t, err)
		docs[id] = members{"id": id, "kind": "change", "resource": domain.ObjectResourceOf(name).Key(), "number": number, "event": event}
	}
	changes := func(docs map[string]members) {
		object(docs)["current"].(members)["attributes"] = "{}"
		rows := object(docs)["rows"].([]any)
		rows[len(rows)-1].(members)["attributes"] = "{}"
	}
	for _, tc := range []struct {
		name, rule string
		edit       func(docs map[string]members)
	}{
		{"a mark that is removed", "P14", func(docs map[string]members) { delete(object(docs), "watched") }},
		{"a change that is not stored", "P14", changes},
		{"a change that is counted and not stored", "P14", func(docs map[string]members) {
			changes(docs)
			object(docs)["changes"] = last + 1
		}},
		{"a change that is stored and not counted", "P14", func(docs map[string]members) {
			changes(docs)
			store(docs, last+1, "updated")
		}},
		{"a change with a number that was there", "P14", func(docs map[string]members) {
			changes(docs)
			object(docs)["changes"] = last + 1
			store(docs, last, "updated")
		}},
		{"another event", "P14", func(docs map[string]members) {
			changes(docs)
			object(docs)["changes"] = last + 1
			store(docs, last+1, "deleted")
		}},
		{"a change of nothing", "P14", func(docs map[string]members) {
			object(docs)["changes"] = last + 1
			store(docs, last+1, "updated")
		}},
		{"a change of what is no object", "layout", func(docs map[string]members) {
			store(docs, last+1, "updated")
			docs[fmt.Sprintf("-c.hash.%020d", last+1)]["resource"] = "/v1/resources/a"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observeWatched(t)
			require.ErrorContains(t, o.Commit(o.editDocument(t, tc.edit)), tc.rule+": ")
		})
	}
}

func TestStoredChange_IsInTheCommitOfItsObject(t *testing.T) {
	o := observeWatched(t)
	o.ingestEvents("[C@50/1]")
	var alone string
	for id, c := range o.documents {
		if strings.HasPrefix(id, "-c.") {
			alone = id
			require.ErrorContains(t, o.Commit([]embedded.Change{c}), "P14: ", "a stored change has changed")
		}
	}
	require.NotEmpty(t, alone)
	c := o.documents[alone]
	c.ID = alone + "1"
	require.ErrorContains(t, o.Commit([]embedded.Change{c}), "batch: ")
}

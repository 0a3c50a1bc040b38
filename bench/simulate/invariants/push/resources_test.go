package push

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

const (
	watchedKey  = "/v1/resources/a"
	watchedPart = "|resource|a"
)

func documentChange(members string) embedded.Change {
	return cursorChange(watchedPart, "resource", "{"+members+"}")
}

func storedChange(version int, event string) embedded.Change {
	return cursorChange(watchedPart, fmt.Sprintf("|change|resource|%020d", version), fmt.Sprintf(`{"resource":%q,"version":%d,"event":%q}`, watchedKey, version, event))
}

// publishedChanges returns the head of a stream that contains an entry for each event.
func publishedChanges(key string, events ...string) embedded.Change {
	var entries string
	for i, event := range events {
		if i > 0 {
			entries += ","
		}
		entries += fmt.Sprintf(`{"a":{"event":%q,"resource":%q}}`, event, key)
	}
	c := streamChange("head", `{"priorities":{"0":{"first":0,"runs":[{"w":"1","at":1,"e":[`+entries+`]}]}}}`)
	set(&c.Partition, `["`+streamOfResource(watchedKey)+`|0"]`)
	return c
}

func watchChange(members string) embedded.Change {
	return cursorChange("|watches|o", "w1", "{"+members+"}")
}

// watchedDocument returns an observer of a document that was marked as watched after its first version, and then changed
// once.
func watchedDocument(t *testing.T) *Observer {
	t.Helper()
	o := New(Callbacks{})
	for _, changes := range [][]embedded.Change{
		{documentChange(`"content":"1"`)},
		{documentChange(`"content":"1","watched":true`)},
		{watchChange(`"resource":"/v1/resources/a","after":0,"created":1,"callbackUrl":"x"`)},
		{documentChange(`"content":"2","watched":true,"changes":1`), storedChange(1, "updated")},
	} {
		require.NoError(t, o.Commit(changes))
	}
	require.EqualValues(t, 1, o.Changes("a"))
	require.Contains(t, o.Unpublished(), watchedPart)
	require.Equal(t, "updated", o.Event("a", 0))
	require.Empty(t, o.Event("a", 1))
	before, isStored := o.Replaced("a", "2")
	require.True(t, isStored)
	require.Equal(t, "1", before)
	require.True(t, o.HasWatch("w|o|w1"))
	require.Equal(t, "w|o|w1", o.WatchWithoutCursor())
	return o
}

func TestWatchedDocument_ChangesInOneCommit(t *testing.T) {
	const changed = `"content":"3","watched":true,"changes":2`
	for _, tc := range []struct {
		name    string
		changes []embedded.Change
		rule    string // "": none
	}{
		{"a change", []embedded.Change{documentChange(changed), storedChange(2, "updated")}, ""},
		{"a deletion", []embedded.Change{documentChange(`"absent":true,"watched":true,"changes":2`), storedChange(2, "deleted")}, ""},
		{"another watch", []embedded.Change{documentChange(`"content":"2","watched":true,"changes":1`)}, ""},
		{"a change without what says so", []embedded.Change{documentChange(changed)}, "P14"},
		{"a change that is not counted", []embedded.Change{documentChange(`"content":"3","watched":true,"changes":1`)}, "P14"},
		{"a change that is stored alone", []embedded.Change{storedChange(2, "updated")}, "P14"},
		{"a change with another version", []embedded.Change{documentChange(changed), storedChange(3, "updated")}, "P14"},
		{"a change with another event", []embedded.Change{documentChange(changed), storedChange(2, "deleted")}, "P14"},
		{"a version that is stored again", []embedded.Change{documentChange(`"content":"1","watched":true,"changes":2`), storedChange(2, "updated")}, "P14"},
		{"a stored change that changes", []embedded.Change{documentChange(`"content":"2","watched":true,"changes":1`), storedChange(1, "deleted")}, "P14"},
		{"a mark that is gone", []embedded.Change{documentChange(`"content":"2","changes":1`)}, "P14"},
		{"a deletion with the mark", []embedded.Change{cursorChange(watchedPart, "resource", "")}, "P14"},
		{"a removal before the publication", []embedded.Change{cursorChange(watchedPart, "|change|resource|00000000000000000001", "")}, "P14"},
		{"an entry with another event", []embedded.Change{publishedChanges(watchedKey, "deleted")}, "P14"},
		{"an entry that no change is", []embedded.Change{publishedChanges(watchedKey, "updated", "updated")}, "P14"},
		{"an entry of another resource", []embedded.Change{publishedChanges("/v1/resources/b", "updated")}, "P14"},
		{"another document", []embedded.Change{cursorChange(watchedPart, "x", "{}")}, "layout"},
		{"a new callback", []embedded.Change{watchChange(`"resource":"/v1/resources/a","after":0,"created":1,"callbackUrl":"y"`)}, ""},
		{"a watch that begins elsewhere", []embedded.Change{watchChange(`"resource":"/v1/resources/a","after":1,"created":1`)}, "P18"},
		{"a watch on a document without the mark", []embedded.Change{cursorChange("|watches|o", "w2", `{"resource":"/v1/resources/b"}`)}, "P18"},
		{"a watch ahead of its document", []embedded.Change{cursorChange("|watches|o", "w2", `{"resource":"/v1/resources/a","after":2}`)}, "P18"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := watchedDocument(t).Commit(tc.changes)
			if tc.rule == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.rule+": ")
		})
	}
}

func TestChange_IsRemovedOnceItIsPublished(t *testing.T) {
	o := watchedDocument(t)
	require.NoError(t, o.Commit([]embedded.Change{publishedChanges(watchedKey, "updated")}))
	require.NoError(t, o.Commit([]embedded.Change{cursorChange(watchedPart, "|change|resource|00000000000000000001", "")}))
	require.Empty(t, o.Unpublished())
}

func TestWatchedDocument_CreationIsNotAChange(t *testing.T) {
	o := New(Callbacks{})
	require.NoError(t, o.Commit([]embedded.Change{documentChange(`"absent":true,"watched":true`)}))
	require.ErrorContains(t, o.Commit([]embedded.Change{documentChange(`"content":"1","watched":true,"changes":1`), storedChange(1, "updated")}), "P14: ")
	require.NoError(t, o.Commit([]embedded.Change{cursorChange("|resource|b", "resource", `{"content":"1"}`)}))
	require.NoError(t, o.Commit([]embedded.Change{cursorChange("|resource|b", "resource", "")}), "it is not watched")
}

func TestWatchCursor_BeginsAtTheStartOfItsWatch(t *testing.T) {
	begins := func(o *Observer, stream, at string) error {
		const id = "w|o|w1"
		require.NoError(t, o.Commit([]embedded.Change{cursorChange(shardOf(id)+"|"+stream, "page|0", `{"cursors":["`+id+`"]}`)}))
		require.NoError(t, o.Commit([]embedded.Change{cursorChange(shardOf(id), "watched|"+stream, `{"stream":"`+stream+`","pages":1}`)}))
		return o.Commit([]embedded.Change{cursorChange(id, "cursor", `{"stream":"`+stream+`","at":["`+at+`"]}`)})
	}
	require.NoError(t, begins(watchedDocument(t), streamOfResource(watchedKey), "0.0.0.0"))
	require.ErrorContains(t, begins(watchedDocument(t), streamOfResource(watchedKey), "0.1.0.0"), "P18: ")
	require.ErrorContains(t, begins(watchedDocument(t), "topic|t", "0.0.0.0"), "P18: ")
}

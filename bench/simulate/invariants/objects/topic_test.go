package objects

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/objecttest"
)

func TestObserver_AcceptsCommitsForTheTopic(t *testing.T) {
	o := observeWith(t, script, 0, true)
	o.ingestEvents("[C@80/6+80] [D@90/6+90] [C@A0/7+100]")

	require.Equal(t, 11, o.reached["a change was stored for the topic"])
	o.publishChanges()
	require.NoError(t, o.Commit(o.editDocument(t, func(map[string]members) {})))
}

// publishChanges removes the changes that are stored for the topic.
func (o *observed) publishChanges() {
	o.t.Helper()
	left, err := o.store.Topic().Unpublished(o.t.Context(), o.now.Add(time.Hour), 100)
	require.NoError(o.t, err)
	require.NotEmpty(o.t, left)
	require.NoError(o.t, o.store.Topic().Remove(o.t.Context(), left))
}

func TestObserver_FindsEachViolationOfTheTopic(t *testing.T) {
	version := objecttest.FirstMoment.UnixMicro() + 1000
	object := func(docs map[string]members) members { return docs[idOf("key")] }
	store := func(docs map[string]members, number int64, event string) members {
		id := fmt.Sprintf("-t.hash.%020d", number)
		docs[id] = members{"id": id, "kind": "state-change", "bucket": "bucket", "key": "key", "number": number, "event": event, "row": object(docs)["current"]}
		return docs[id]
	}
	changes := func(docs map[string]members) {
		object(docs)["current"].(members)["attributes"] = "{}"
		rows := object(docs)["rows"].([]any)
		rows[len(rows)-1].(members)["attributes"] = "{}"
	}
	counted := func(docs map[string]members) {
		changes(docs)
		object(docs)["stateVersion"] = version
	}
	for _, tc := range []struct {
		name, rule string
		edit       func(docs map[string]members)
	}{
		{"none", "", func(docs map[string]members) { counted(docs); store(docs, version, "updated") }},
		{"a change that is not stored", "P14", changes},
		{"a change that is counted and not stored", "P14", counted},
		{"a change that is stored and not counted", "P14", func(docs map[string]members) { changes(docs); store(docs, version, "updated") }},
		{"a version that was there", "P14", func(docs map[string]members) {
			changes(docs)
			object(docs)["stateVersion"] = 1
			store(docs, 1, "updated")
		}},
		{"another event", "P14", func(docs map[string]members) { counted(docs); store(docs, version, "created") }},
		{"another row", "P14", func(docs map[string]members) {
			counted(docs)
			store(docs, version, "updated")["row"] = members{"type": 1, "form": 1, "sequencer": "FF"}
		}},
		{"two changes", "P14", func(docs map[string]members) {
			counted(docs)
			store(docs, version, "updated")
			store(docs, version+1, "updated")
		}},
		{"a change of nothing", "P14", func(docs map[string]members) {
			object(docs)["stateVersion"] = version
			store(docs, version, "updated")
		}},
		{"a change of another bucket", "layout", func(docs map[string]members) {
			counted(docs)
			store(docs, version, "updated")["bucket"] = "other"
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observeWith(t, "[C@10/1] [C@20/1]", 0, true)
			o.publishChanges()
			err := o.Commit(o.editDocument(t, tc.edit))
			if tc.rule == "" { // this case breaks no rule of the topic; only L10 reports attributes that changed without a patch
				require.NotContains(t, err.Error(), "P14")
				return
			}
			require.ErrorContains(t, err, tc.rule+": ")
		})
	}
}

// A store without a topic must not store changes for a topic.
func TestObserver_FindsChangesWithoutATopic(t *testing.T) {
	o := observeWith(t, "[C@10/1]", 0, true)
	o.publishChanges()
	o.HasTopic = false
	o.documents["-t.x"] = o.documents[idOf("key")]
	err := o.Commit(o.editDocument(t, func(docs map[string]members) {
		docs["-t.x"] = members{"id": "-t.x", "kind": "state-change", "bucket": "bucket", "key": "key", "number": 1, "event": "updated", "row": docs[idOf("key")]["current"]}
	}))
	require.ErrorContains(t, err, "P14: ")
}

package objects

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

// members are the members of a stored document.
type members = map[string]any

// An observed is an object store and the observer that checks its commits.
type observed struct {
	*Observer
	t         *testing.T
	store     *objectstore.Store
	now       time.Time // time of the store's clock
	draws     uint64
	documents map[string]embedded.Change // last change of each document, by id
	reached   map[string]int
}

// script has an event without a sequencer, whose position moves, versions with spilled rows, and a late event.
const script = "[C@10/1+10] [D@20/1+20] [C@30/2+30] [C@-/2+36] [C@35/2+35] [C@40/3+40] [C@50/4+50] [C@60/4+60] [C@12/1+12] [C@12/1+12] [M@70/5+70]"

// newObserved returns a store that has stored the events of a script.
func newObserved(t *testing.T, script string) *observed { return observeFor(t, script, 0) }

// observeFor is like newObserved, for a store with a retention.
func observeFor(t *testing.T, script string, retention time.Duration) *observed {
	t.Helper()
	return observeWith(t, script, retention, false)
}

// observeWith is like observeFor, for a store that may have a topic.
func observeWith(t *testing.T, script string, retention time.Duration, hasTopic bool) *observed {
	t.Helper()
	o := &observed{Observer: New(), t: t, now: objecttest.FirstMoment, documents: make(map[string]embedded.Change), reached: make(map[string]int)}
	o.HasTopic = hasTopic
	o.Reached = func(state string) { o.reached[state]++ }
	if retention > 0 {
		o.Forgets = func() (rows, dead time.Time) {
			return o.now.Add(-retention), o.now.Add(-domain.MinDeadRetention - time.Hour)
		}
	}
	a := accounttest.New(t, embedded.Options{Committed: func(changes []embedded.Change) {
		for _, c := range changes {
			if o.documents[c.ID] = c; c.JSON == nil {
				delete(o.documents, c.ID)
			}
		}
		if err := o.Commit(changes); err != nil {
			t.Error(err)
		}
	}}, objectstore.Containers())
	o.store = objectstore.New(a.Connect(), objectstore.Options{
		Shards: 1, Limits: domain.ObjectLimits{Rows: 2}, Retention: domain.ObjectRetention(retention), Topic: hasTopic, Clock: func() time.Time { return o.now },
		Random: func() uint64 { o.draws++; return o.draws }, // deterministic, so that two stores have the same ids
	})
	for _, outcome := range o.ingestEvents(script) {
		require.NotEqual(t, domain.ObjectTooOld, outcome)
	}
	return o
}

// ingestEvents ingests the events of a script, and returns their outcomes.
func (o *observed) ingestEvents(script string) (outcomes []domain.ObjectOutcome) {
	o.t.Helper()
	for _, events := range objecttest.Calls(script) {
		results, err := o.store.Ingest(o.t.Context(), []repository.ObjectReport{{Name: o.nameOf(), ObjectEvent: events[0]}})
		require.NoError(o.t, err)
		require.NoError(o.t, results[0].Err)
		outcomes = append(outcomes, results[0].Outcome)
	}
	return outcomes
}

func (o *observed) nameOf() domain.ObjectName {
	name, err := domain.ParseObjectName("bucket", "key")
	require.NoError(o.t, err)
	return name
}

// editDocument adds a write id to the object, calls edit, and returns the documents that changed.
func (o *observed) editDocument(t *testing.T, edit func(docs map[string]members)) (changes []embedded.Change) {
	docs := make(map[string]members)
	for id, c := range o.documents {
		d := members{}
		require.NoError(t, json.Unmarshal(c.JSON, &d))
		docs[id] = d
	}
	object := docs[idOf("key")]
	object["writes"] = append(object["writes"].([]any)[max(len(object["writes"].([]any))-7, 0):], "another")
	edit(docs)
	for _, id := range slices.Sorted(maps.Keys(docs)) {
		if _, isThere := o.documents[id]; !isThere { // edit has created this document
			c := o.documents[idOf("key")]
			c.ID = id
			o.documents[id] = c
		}
	}
	for _, id := range slices.Sorted(maps.Keys(o.documents)) {
		c := o.documents[id]
		if d := docs[id]; d == nil {
			c.JSON = nil
		} else {
			text, err := json.Marshal(d)
			require.NoError(t, err)
			c.JSON = text
		}
		changes = append(changes, c)
	}
	return changes
}

func TestObserver_AcceptsCommitsOfAStore(t *testing.T) {
	o := newObserved(t, script)
	require.Equal(t, len(objecttest.Calls(script)), o.Commits("bucket", "key"))
	require.Zero(t, o.Commits("bucket", "other"))
	require.Zero(t, o.Commits("other", "key"))
	require.NoError(t, o.Commit(o.editDocument(t, func(map[string]members) {})))
	for _, state := range []string{"rows were spilled", "an event came below the floor", "a generated position moved behind a late row"} {
		require.Positive(t, o.reached[state], state)
	}
	o = newObserved(t, "[C@10/1] [C@20/2] [D@30/2] [C@40/3] [D@50/3]")
	require.Positive(t, o.reached["a spilled row became the current one"])
}

func TestObserver_FindsEachViolationOfTheLedger(t *testing.T) {
	object := func(docs map[string]members) members { return docs[idOf("key")] }
	rows := func(docs map[string]members) []any { return object(docs)["rows"].([]any) }
	row := func(docs map[string]members, i int) members { return rows(docs)[i].(members) }
	// spilled returns the document of a kind, a spilled row or a copy, for the row with a sequencer.
	spilled := func(docs map[string]members, kind, sequencer string) (id string, fields members) {
		for id, d := range docs {
			if fields, has := d["row"].(members); has && d["kind"] == kind && (fields["sequencer"] == sequencer || sequencer == "" && fields["number"] != nil) {
				return id, fields
			}
		}
		require.FailNow(t, "there is no such row", "%s %s", kind, sequencer)
		return "", nil
	}
	for _, tc := range []struct {
		name, rule string
		edit       func(docs map[string]members)
	}{
		{"a row that is gone", "L1", func(docs map[string]members) {
			id, _ := spilled(docs, "row", "20")
			delete(docs, id)
		}},
		{"a fact that changes", "L1", func(docs map[string]members) { row(docs, 0)["eTag"] = "another" }},
		{"an event with two rows", "L2", func(docs map[string]members) {
			object(docs)["rows"] = append([]any{row(docs, 0)}, rows(docs)...)
		}},
		{"a current row below a marker", "L3", func(docs map[string]members) {
			object(docs)["current"], object(docs)["live"] = row(docs, 0), true
		}},
		{"an object that only says that it is live", "L3", func(docs map[string]members) { object(docs)["live"] = true }},
		{"a floor above a row", "L4", func(docs map[string]members) { object(docs)["floor"].(members)["base"] = "FF" }},
		{"a floor that sinks", "L4", func(docs map[string]members) { object(docs)["floor"].(members)["base"] = "01" }},
		{"a version without a copy", "L4", func(docs map[string]members) {
			id, _ := spilled(docs, "head", "20")
			delete(docs, id)
		}},
		{"a copy that is old", "L4", func(docs map[string]members) {
			_, fields := spilled(docs, "head", "20")
			fields["duplicates"] = 3
		}},
		{"an event that is not counted", "L5", func(docs map[string]members) { object(docs)["events"] = 3 }},
		{"a duplicate that is not counted", "L5", func(docs map[string]members) {
			_, fields := spilled(docs, "row", "12")
			fields["duplicates"] = 2
		}},
		{"a duplicate that is forgotten", "L5", func(docs map[string]members) {
			_, fields := spilled(docs, "row", "12")
			delete(fields, "duplicates")
			object(docs)["duplicates"] = 0
		}},
		{"a write that comes again", "L5", func(docs map[string]members) {
			writes := object(docs)["writes"].([]any)
			writes[len(writes)-1] = writes[0]
		}},
		{"a write that is forgotten too early", "L5", func(docs map[string]members) {
			writes := object(docs)["writes"].([]any)
			object(docs)["writes"] = writes[len(writes)-1:]
		}},
		{"a number that comes again", "L6", func(docs map[string]members) { object(docs)["generated"] = 2 }},
		{"a null sequencer that is not moved", "L6", func(docs map[string]members) {
			_, fields := spilled(docs, "row", "")
			fields["base"] = "30"
		}},
		{"a bucket with another number of shards", "shard", func(docs map[string]members) { docs["shards"]["shards"] = 2 }},
		{"an object in another shard", "shard", func(docs map[string]members) { object(docs)["key"] = "other" }},
		{"a document of another kind", "layout", func(docs map[string]members) { object(docs)["kind"] = "other" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newObserved(t, script)
			require.ErrorContains(t, o.Commit(o.editDocument(t, tc.edit)), tc.rule+": ")
		})
	}
}

// A write may come again only if the object no longer contains its id, and the write only counts duplicates. script has
// enough writes that the object no longer contains the id of the first one.
func TestObserver_AcceptsARepeatedWriteOnlyOfDuplicatesAndAfterItsIDIsForgotten(t *testing.T) {
	object := func(docs map[string]members) members { return docs[idOf("key")] }
	row := func(docs map[string]members) members { return object(docs)["rows"].([]any)[0].(members) }
	count := func(docs map[string]members) {
		n, _ := row(docs)["duplicates"].(float64)
		sum, _ := object(docs)["duplicates"].(float64)
		row(docs)["duplicates"], object(docs)["duplicates"] = n+1, sum+1
	}
	for _, tc := range []struct {
		name  string
		write func(o *observed) string // id of the write that comes again
		edit  func(docs map[string]members)
		want  bool
	}{
		{"a duplicate", firstWrite, count, true},
		{"nothing", firstWrite, func(map[string]members) {}, false},
		{"a duplicate, and the object contains the id", oldestWrite, count, false},
		{"a duplicate and other metadata", firstWrite, func(docs map[string]members) {
			count(docs)
			row(docs)["ingestId"] = "another"
		}, false},
		{"a duplicate and a row that is gone", firstWrite, func(docs map[string]members) {
			count(docs)
			for id, d := range docs {
				if fields, has := d["row"].(members); has && d["kind"] == "row" && fields["sequencer"] == "20" {
					delete(docs, id)
				}
			}
		}, false},
		{"a duplicate and a new row", firstWrite, func(docs map[string]members) {
			count(docs)
			added := members{"version": "6", "type": deleted, "form": hexForm, "sequencer": "80", "time": "2026-03-04T08:06:27Z", "writeId": object(docs)["writes"].([]any)[maxWrites-1]}
			object(docs)["rows"] = append(object(docs)["rows"].([]any), added)
			object(docs)["events"] = object(docs)["events"].(float64) + 1
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newObserved(t, script)
			id := tc.write(o)
			err := o.Commit(o.editDocument(t, func(docs map[string]members) {
				writes := object(docs)["writes"].([]any)
				writes[len(writes)-1] = id
				tc.edit(docs)
			}))
			if tc.want {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "L5: its write ids changed")
			}
		})
	}
}

// firstWrite returns the id of the first write of the object, which the object no longer contains.
func firstWrite(o *observed) string {
	known := o.objects[key{shardOf("bucket", "key", 1), idOf("key")}]
	for _, r := range known.rows {
		if r.Sequencer == "10" && !slices.Contains(known.doc.Writes, r.WriteID) {
			return r.WriteID
		}
	}
	require.FailNow(o.t, "the object contains its first write")
	return ""
}

// oldestWrite returns the oldest id that the object contains. The write that comes again displaces this id.
func oldestWrite(o *observed) string {
	return o.objects[key{shardOf("bucket", "key", 1), idOf("key")}].doc.Writes[0]
}

func TestSpilledRow_ChangesOnlyWithItsObject(t *testing.T) {
	o := newObserved(t, script)
	changes := slices.DeleteFunc(o.editDocument(t, func(map[string]members) {}), func(c embedded.Change) bool { return c.ID == idOf("key") })
	require.ErrorContains(t, o.Commit(changes), "batch: ")
}

func TestObserver_ReportsUnknownDocuments(t *testing.T) {
	o := newObserved(t, script)
	other := o.documents["shards"]
	other.Container = "others"
	require.ErrorContains(t, o.Commit([]embedded.Change{other}), "containers: ")
	damaged := o.documents["shards"]
	require.Equal(t, containers.Objects, damaged.Container)
	damaged.JSON = []byte("{")
	require.ErrorContains(t, o.Commit([]embedded.Change{damaged}), "layout: ")
	require.Equal(t, hexForm, int(domain.HexSequencer))
}

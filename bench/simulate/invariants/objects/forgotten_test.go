package objects

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

const retention = 10 * time.Second

// sweepAndCheck sweeps all rows that may be forgotten when the clock shows the first moment plus
// after.
func (o *observed) sweepAndCheck(after time.Duration) {
	o.t.Helper()
	o.now = objecttest.FirstMoment.Add(after)
	page, err := o.store.Forget(o.t.Context(), repository.ObjectShard{Bucket: "bucket"}, "", 10)
	require.NoError(o.t, err)
	require.NoError(o.t, page.Failure)
	require.Positive(o.t, page.Rows)
}

// sweptScript has two versions, one of them deleted, and a null sequencer.
const sweptScript = "[C@10/1+10] [C@20/1+20] [C@30/1+30] [C@-/1+35] [D@40/1+40] [C@50/2+50] [C@60/2+60]"

func TestObserver_AcceptsForgottenRows(t *testing.T) {
	o := observeFor(t, sweptScript, retention)
	o.sweepAndCheck(200 * time.Second)
	require.Positive(t, o.reached["rows were forgotten"])
	require.Zero(t, o.reached["an object was forgotten"])
	require.Equal(t, []domain.ObjectOutcome{domain.ObjectTooOld, domain.ObjectStored}, o.ingestEvents("[C@20/1+20] [C@70/2+190]"))

	dead := observeFor(t, "[C@10+10] [D@20+20]", retention)
	dead.sweepAndCheck(15 * 24 * time.Hour)
	require.Positive(t, dead.reached["an object was forgotten"])
	require.Equal(t, []domain.ObjectOutcome{domain.ObjectTooOld}, dead.ingestEvents("[C@10+10]"))
	require.Equal(t, []domain.ObjectOutcome{domain.ObjectStored}, dead.ingestEvents("[C@30+1290000]"))
}

func TestObserver_FindsEachViolationOfForgetting(t *testing.T) {
	object := func(docs map[string]members) members { return docs[idOf("key")] }
	rows := func(docs map[string]members) []any { return object(docs)["rows"].([]any) }
	// forget removes the rows with a sequencer, as if they were forgotten.
	forget := func(docs map[string]members, sequencer string) {
		d := object(docs)
		d["rows"] = slices.DeleteFunc(slices.Clone(rows(docs)), func(r any) bool {
			row := r.(members)
			if row["sequencer"] != sequencer {
				return false
			}
			d["forgottenTo"] = row["time"]
			d["forgotten"] = members{"base": sequencer, "type": row["type"], "version": row["version"], "sequencer": sequencer, "time": "0"}
			d["forgottenRows"] = d["forgottenRows"].(float64) + 1
			return true
		})
	}
	addRow := func(docs map[string]members, sequencer, at string) {
		row := members{"version": "1", "type": created, "form": hexForm, "sequencer": sequencer, "time": at}
		object(docs)["rows"] = append([]any{row}, rows(docs)...)
	}
	for _, tc := range []struct {
		name, rule string
		edit       func(docs map[string]members)
	}{
		{"an event that comes back", "L7", func(docs map[string]members) { addRow(docs, "20", "2026-03-04T08:06:27Z") }},
		{"an event that is as old as what was forgotten", "L7", func(docs map[string]members) { addRow(docs, "55", "2026-03-04T05:06:20Z") }},
		{"the newest row of a version that exists", "L7", func(docs map[string]members) { forget(docs, "60") }},
		{"a row that nothing remembers", "L1", func(docs map[string]members) { object(docs)["rows"] = []any{} }},
		{"an object of which a version exists", "L7", func(docs map[string]members) {
			for id, d := range docs {
				if d["kind"] != "bucket" {
					delete(docs, id)
				}
			}
		}},
		{"a memory that shrinks", "L7", func(docs map[string]members) { object(docs)["forgottenTo"] = "2026-03-04T05:06:08Z" }},
		{"an order that shrinks", "L7", func(docs map[string]members) { delete(object(docs), "forgotten") }},
		{"a count of forgotten rows", "L7", func(docs map[string]members) { object(docs)["forgottenRows"] = 1 }},
		{"a number that comes again", "L6", func(docs map[string]members) {
			row := members{"version": "2", "type": created, "message": "another", "time": "2026-03-04T08:06:27Z", "baseForm": hexForm, "base": "60", "rank": behindRow, "number": 1, "writeId": "another"}
			object(docs)["rows"] = append(slices.Clone(rows(docs)), row)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observeFor(t, sweptScript, retention)
			o.sweepAndCheck(200 * time.Second)
			require.ErrorContains(t, o.Commit(o.editDocument(t, tc.edit)), tc.rule+": ")
		})
	}
}

func TestObserver_FindsRowsForgottenTooEarly(t *testing.T) {
	o := observeFor(t, sweptScript, retention)
	o.Forgets = func() (rows, dead time.Time) { return objecttest.FirstMoment, objecttest.FirstMoment }
	o.now = objecttest.FirstMoment.Add(200 * time.Second)
	before := o.editDocument(t, func(map[string]members) {})
	swept := observeFor(t, sweptScript, retention)
	swept.sweepAndCheck(200 * time.Second)
	changes := swept.editDocument(t, func(map[string]members) {})
	for _, c := range before {
		if _, isLeft := swept.documents[c.ID]; !isLeft {
			c.JSON = nil
			changes = append(changes, c)
		}
	}
	require.ErrorContains(t, o.Commit(changes), "L7: ")
}

func TestObserver_FindsObjectsThatReappear(t *testing.T) {
	o := observeFor(t, "[C@10+10] [D@20+20]", retention)
	var documents []embedded.Change
	for _, c := range o.documents {
		documents = append(documents, c)
	}
	o.sweepAndCheck(15 * 24 * time.Hour)
	require.ErrorContains(t, o.Commit(documents), "L7: ")
}

func TestForgetting_ChangesNothingElse(t *testing.T) {
	o := observeFor(t, sweptScript, retention)
	swept := observeFor(t, sweptScript, retention)
	swept.sweepAndCheck(200 * time.Second)
	o.now = swept.now
	changes := swept.editDocument(t, func(docs map[string]members) {
		d := docs[idOf("key")]
		writes := d["writes"].([]any)
		d["writes"] = writes[:len(writes)-1] // remove the id of the new write
		d["rows"].([]any)[0].(members)["duplicates"] = 1
	})
	for id, c := range o.documents {
		if _, isLeft := swept.documents[id]; !isLeft {
			c.JSON = nil
			changes = append(changes, c)
		}
	}
	require.ErrorContains(t, o.Commit(changes), "L5: there is no new write id")
}

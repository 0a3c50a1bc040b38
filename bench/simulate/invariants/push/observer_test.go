package push

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// set sets a string field whose type is not exported.
func set[T ~string](to *T, value string) { *to = T(value) }

func streamChange(id, json string) embedded.Change {
	c := embedded.Change{Container: containers.Streams, ID: id, JSON: []byte(json)}
	set(&c.Partition, `["topic|t|0"]`)
	return c
}

func cursorChange(partition, id, json string) embedded.Change {
	c := embedded.Change{Container: containers.Cursors, ID: id}
	set(&c.Partition, `["`+partition+`"]`)
	if json != "" {
		c.JSON = []byte(json)
	}
	return c
}

const cursorName = "s|a"

// observeHistory returns an observer of a stream with four entries and a cursor whose first two
// entries are open.
func observeHistory(t *testing.T) *Observer {
	t.Helper()
	o := New(Callbacks{
		Matches:  func(_ string, e Entry) bool { return e.Number != 3 },
		Accepted: func(_ string, e Entry) bool { return e.Number == 0 },
		Calls:    func(string) int64 { return 2 },
		Budget:   func(string) int { return 2 },
	})
	for _, changes := range [][]embedded.Change{
		{streamChange("head", `{"priorities":{"0":{"first":0,"runs":[{"w":"1","at":1,"e":[{},{},{}]}]}}}`)},
		{
			streamChange("head", `{"priorities":{"0":{"first":4}}}`),
			streamChange("page-0-0", `{"first":0,"runs":[{"w":"1","at":1,"e":[{},{},{}]},{"w":"2","at":2,"e":[{}]}]}`),
		},
		{cursorChange(shardOf(cursorName), cursorName, `{"stream":"topic|t"}`)},
		{cursorChange(cursorName, "cursor", `{"stream":"topic|t"}`)},
		{cursorChange(cursorName, "cursor", `{"stream":"topic|t","by":"n1","at":["0.2.0.0"],"open":["0.0.0.0","0.1.0.0"],"triggered":2}`)},
		{cursorChange(shardOf(cursorName), cursorName, `{"stream":"topic|t","due":5}`)},
	} {
		require.NoError(t, o.Commit(changes))
	}
	return o
}

func TestObserver_FindsEachViolation(t *testing.T) {
	cursor := func(members string) embedded.Change {
		return cursorChange(cursorName, "cursor", `{"stream":"topic|t","by":"n1",`+members+`}`)
	}
	retry := func(n, attempts, due int) embedded.Change {
		return cursorChange(cursorName, fmt.Sprintf("retry|0|%016d", n), fmt.Sprintf(`{"kind":"retry","position":"0.%d.0.0","attempts":%d,"due":%d}`, n, attempts, due))
	}
	for _, tc := range []struct {
		name    string
		changes []embedded.Change
		rule    string // "": none
	}{
		{"a delivery that was accepted", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.1.0.0"],"triggered":2,"delivered":1,"attempts":1`)}, ""},
		{"a delivery that failed", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0"],"triggered":2,"retries":1,"attempts":1`), retry(1, 1, 9)}, ""},
		{"an entry that does not pass the filter", []embedded.Change{cursor(`"at":["0.4.0.0"],"open":["0.0.0.0","0.1.0.0","0.2.0.0"],"triggered":3,"filtered":1`)}, ""},
		{"a delivery that its consumer fetches", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0"],"heldId":"b","held":["0.1.0.0"],"triggered":2`)}, ""},
		{"a delivery by both doors", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0","0.1.0.0"],"heldId":"b","held":["0.1.0.0"],"triggered":2`)}, "P15"},
		{"a bundle that is dequeued unseen", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0","0.1.0.0"],"dequeued":["b"],"triggered":2`)}, "P20"},
		{"a cursor without its consumer", []embedded.Change{cursorChange("c|t|k", "cursor", `{"stream":"topic|t"}`)}, "P18"},
		{"a token that is not sealed", []embedded.Change{cursorChange("|channels", "t", `{"kind":"party","token":"t","changed":1}`)}, "P13"},
		{"a party that is gone", []embedded.Change{cursorChange("|channels", "t", "")}, "P18"},
		{"a proof", []embedded.Change{cursorChange(cursorName, "cursor", `{"stream":"topic|t","by":"n2","at":["0.2.0.0"],"open":["0.0.0.0","0.1.0.0"],"triggered":2}`)}, ""},
		{"counters that do not add up", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.1.0.0"],"triggered":3,"delivered":1`)}, "P2"},
		{"a delivery that was not accepted", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0"],"triggered":2,"delivered":1`)}, "P4"},
		{"an end that is not counted", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.1.0.0"],"triggered":1`)}, "P3"},
		{"a cursor that goes back", []embedded.Change{cursor(`"at":["0.1.0.0"],"open":["0.0.0.0","0.1.0.0"],"triggered":2`)}, "P1"},
		{"a cursor ahead of its stream", []embedded.Change{cursor(`"at":["0.5.0.0"],"open":["0.0.0.0","0.1.0.0","0.2.0.0","0.4.0.0"],"triggered":4,"filtered":1`)}, "P1"},
		{"a take-over that settles", []embedded.Change{cursorChange(cursorName, "cursor", `{"stream":"topic|t","by":"n2","at":["0.2.0.0"],"open":["0.1.0.0"],"triggered":2,"delivered":1}`)}, "P5"},
		{"a retry without its cursor", []embedded.Change{retry(1, 1, 9)}, "P6"},
		{"a retry that the cursor does not count", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0"],"triggered":2`), retry(1, 1, 9)}, "P6"},
		{"a retry that is listed too late", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0"],"triggered":2,"retries":1`), retry(1, 1, 4)}, "P7"},
		{"an attempt beyond the budget", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0"],"triggered":2,"retries":1`), retry(1, 2, 9)}, "P8"},
		{"an attempt that was not made", []embedded.Change{cursor(`"at":["0.2.0.0"],"open":["0.0.0.0","0.1.0.0"],"triggered":2,"attempts":3`)}, "P8"},
		{"an entry that changes", []embedded.Change{streamChange("page-0-0", `{"first":0,"runs":[{"w":"3","at":1,"e":[{}]}]}`)}, "P1"},
		{"a number that is left out", []embedded.Change{streamChange("head", `{"priorities":{"0":{"first":5,"runs":[{"w":"3","at":1,"e":[{}]}]}}}`)}, "P1"},
		{"an entry that is lost", []embedded.Change{streamChange("head", `{"priorities":{"0":{"first":3}}}`)}, "P1"},
		{"a due time that rises", []embedded.Change{cursorChange(shardOf(cursorName), cursorName, `{"stream":"topic|t","due":6}`)}, "P7"},
		{"an assignment with another version", []embedded.Change{cursorChange("|nodes", "assignment", `{"version":2}`)}, "shards"},
		{"a document without a rule", []embedded.Change{{Container: "others", ID: "x"}}, "containers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := observeHistory(t).Commit(tc.changes)
			if tc.rule == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.rule+": ")
		})
	}
}

func TestDeadLetter_IsCountedAndStays(t *testing.T) {
	o := observeHistory(t)
	const id = "retry|0|0000000000000001"
	require.NoError(t, o.Commit([]embedded.Change{
		cursorChange(cursorName, "cursor", `{"stream":"topic|t","by":"n1","at":["0.2.0.0"],"open":["0.0.0.0"],"triggered":2,"errored":1,"attempts":1}`),
		cursorChange(cursorName, id, `{"kind":"dead","position":"0.1.0.0","attempts":1}`),
	}))
	require.True(t, o.Dead(cursorName, Entry{"topic|t", 0, 1}))
	outstanding, at := o.Outstanding(cursorName)
	require.Equal(t, []Entry{{"topic|t", 0, 0}}, outstanding)
	require.Equal(t, map[int]int64{0: 2}, at)
	require.NoError(t, o.Commit([]embedded.Change{cursorChange(cursorName, id, "")}), "it expires")
	err := o.Commit([]embedded.Change{
		cursorChange(cursorName, "cursor", `{"stream":"topic|t","by":"n1","at":["0.2.0.0"],"open":["0.0.0.0","0.1.0.0"],"triggered":3,"errored":1,"attempts":1}`),
	})
	require.ErrorContains(t, err, "P3: ")
}

func TestBundle_IsTheSameUntilItIsDequeued(t *testing.T) {
	const at, held = `{"stream":"topic|t","by":"n1","at":["0.2.0.0"],"triggered":2,`, `"heldId":"b","held":["0.0.0.0","0.1.0.0"]}`
	for _, tc := range []struct{ name, cursor, rule string }{
		{"the same", at + held, ""},
		{"dequeued", at + `"dequeued":["b"],"delivered":2}`, ""},
		{"another one", at + `"heldId":"c","held":["0.0.0.0","0.1.0.0"]}`, "P20"},
		{"smaller", at + `"heldId":"b","held":["0.0.0.0"],"open":["0.1.0.0"]}`, "P20"},
		{"called again", at + `"open":["0.0.0.0","0.1.0.0"]}`, "P20"},
		{"dequeued, and open", at + `"dequeued":["b"],"open":["0.1.0.0"],"delivered":1}`, "P20"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := observeHistory(t)
			accepts := o.callbacks
			accepts.Accepted = func(string, Entry) bool { return true }
			o.SetCallbacks(accepts)
			require.NoError(t, o.Commit([]embedded.Change{cursorChange(cursorName, "cursor", at+held)}))
			require.Equal(t, "b", o.Bundle(cursorName))
			err := o.Commit([]embedded.Change{cursorChange(cursorName, "cursor", tc.cursor)})
			if tc.rule == "" {
				require.NoError(t, err)
				require.True(t, o.Fetched(cursorName, Entry{"topic|t", 0, 0}))
				return
			}
			require.ErrorContains(t, err, tc.rule+": ")
		})
	}
}

func TestConsumer_KeepsItsPosition(t *testing.T) {
	const list, id = "|consumers|t", "c|t|k"
	consumer := func(start string, changed int) embedded.Change {
		return cursorChange(list, "k", fmt.Sprintf(`{"kind":"party","token":"sealed","startAt":["%s"],"created":1,"changed":%d}`, start, changed))
	}
	begins := func(o *Observer, at string) error {
		require.NoError(t, o.Commit([]embedded.Change{cursorChange(shardOf(id), id, `{"stream":"topic|t"}`)}))
		return o.Commit([]embedded.Change{cursorChange(id, "cursor", `{"stream":"topic|t","at":["`+at+`"]}`)})
	}
	o := observeHistory(t)
	require.NoError(t, o.Commit([]embedded.Change{consumer("0.2.0.0", 1)}))
	require.NoError(t, begins(o, "0.2.0.0"))
	require.Equal(t, map[int]int64{0: 2}, o.Begin(id))
	require.NoError(t, o.Commit([]embedded.Change{consumer("0.2.0.0", 2)}))
	require.ErrorContains(t, o.Commit([]embedded.Change{consumer("0.1.0.0", 3)}), "P18: ")
	require.ErrorContains(t, o.Commit([]embedded.Change{consumer("0.1.0.0", 3)}), "P18: ", "its time stands still")
	o = observeHistory(t)
	require.NoError(t, o.Commit([]embedded.Change{consumer("0.2.0.0", 1)}))
	require.ErrorContains(t, begins(o, "0.1.0.0"), "P18: ")
}

func TestSealedHead_MayBeWrittenUnchanged(t *testing.T) {
	const sealed = `{"sealed":true,"priorities":{"0":{"first":4}},"_etag":"%d"}`
	o := observeHistory(t)
	require.NoError(t, o.Commit([]embedded.Change{streamChange("head", fmt.Sprintf(sealed, 1))}))
	require.NoError(t, o.Commit([]embedded.Change{streamChange("head", fmt.Sprintf(sealed, 2))}))
	next := streamChange("head", `{"priorities":{"0":{"first":4,"runs":[{"w":"4","at":3,"e":[{}]}]}}}`)
	set(&next.Partition, `["topic|t|1"]`)
	require.NoError(t, o.Commit([]embedded.Change{next}))
	require.NoError(t, o.Commit([]embedded.Change{streamChange("head", fmt.Sprintf(sealed, 3))}), "its stream continues in another segment")
	err := o.Commit([]embedded.Change{streamChange("head", `{"sealed":true,"priorities":{"0":{"first":4,"runs":[{"w":"3","at":3,"e":[{}]}]}}}`)})
	require.ErrorContains(t, err, "P1: the segment changed after it was sealed")
}

package push

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

const pagedWatch = "w|o|w1"

var pagedStream = streamOfResource(watchedKey)

func pageChange(json string) embedded.Change {
	return cursorChange(shardOf(pagedWatch)+"|"+pagedStream, "page|0", json)
}

func pagedCursor(at int, rest string) embedded.Change {
	return cursorChange(pagedWatch, "cursor", fmt.Sprintf(`{"stream":%q,"at":["0.%d.0.0"]%s}`, pagedStream, at, rest))
}

func pagedEntry(json string) embedded.Change {
	return cursorChange(shardOf(pagedWatch), pagedWatch, json)
}

// pagedWatchOn returns an observer of a watch whose cursor is in a page. The watched document has
// one published change.
func pagedWatchOn(t *testing.T) *Observer {
	o := watchedDocument(t)
	for _, c := range []embedded.Change{
		pageChange(`{"cursors":["` + pagedWatch + `"]}`),
		cursorChange(shardOf(pagedWatch), "watched|"+pagedStream, `{"stream":"`+pagedStream+`","pages":1}`),
		pagedCursor(0, ""),
		publishedChanges(watchedKey, "updated"),
	} {
		require.NoError(t, o.Commit([]embedded.Change{c}))
	}
	return o
}

func TestObserver_ChecksPagesOfWatches(t *testing.T) {
	const cursors = `{"cursors":["` + pagedWatch + `"]`
	taken, open := pagedCursor(1, `,"triggered":1,"cancelled":1`), pagedCursor(1, `,"open":["0.0.0.0"],"triggered":1`)
	for _, tc := range []struct {
		name    string
		commits []embedded.Change
		isWrong bool // true if the last commit of the case is a violation
	}{
		{"served once its watch has taken the change", []embedded.Change{taken, pageChange(cursors + `,"served":1}`)}, false},
		{"served before", []embedded.Change{pageChange(cursors + `,"served":1}`)}, true},
		{"served while a delivery is outstanding", []embedded.Change{open, pageChange(cursors + `,"served":1}`)}, true},
		{"served while a watch that is listed has an outstanding delivery", []embedded.Change{pagedEntry(`{"due":1}`), open, pageChange(cursors + `,"served":1}`)}, false},
		{"unlisted while a delivery is outstanding", []embedded.Change{pagedEntry(`{"due":1}`), open, pagedEntry("")}, true},
		{"unlisted", []embedded.Change{pagedEntry(`{"due":1}`), taken, pagedEntry("")}, false},
		{"unlisted behind its page", []embedded.Change{pagedEntry(`{"due":1}`), pageChange(cursors + `,"served":1}`), pagedEntry("")}, true},
		{"without a watch that is there", []embedded.Change{pageChange(`{"cursors":[]}`)}, true},
		{"a page that is gone", []embedded.Change{pageChange("")}, true},
		{"pages that the shard does not speak of", []embedded.Change{cursorChange(shardOf(pagedWatch), "watched|"+pagedStream, "")}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := pagedWatchOn(t)
			last := len(tc.commits) - 1
			for _, c := range tc.commits[:last] {
				require.NoError(t, o.Commit([]embedded.Change{c}))
			}
			err := o.Commit([]embedded.Change{tc.commits[last]})
			if tc.isWrong {
				require.ErrorContains(t, err, "P7: ")
				return
			}
			require.NoError(t, err)
		})
	}
}

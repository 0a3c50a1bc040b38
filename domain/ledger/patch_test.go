package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

const ingestID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

// Each operation of a JSON Patch changes the attributes (case FM-98 of the original system).
func TestPatch_AppliesEachOperation(t *testing.T) {
	for _, tc := range []struct{ before, patch, want string }{
		{``, `[{"op": "add", "path": "/a", "value": 1}]`, `{"a":1}`},
		{`null`, `[{"op": "add", "path": "/a", "value": null}]`, `{"a":null}`},
		{`{}`, `{"attributes": [{"op": "add", "path": "/a", "value": {"b": []}}, {"op": "add", "path": "/a/b/-", "value": 1}]}`, `{"a":{"b":[1]}}`},
		{`{"a":1}`, `[{"op": "test", "path": "/a", "value": 1}, {"op": "copy", "from": "/a", "path": "/b"}]`, `{"a":1,"b":1}`},
		{`{"a/b":{"~":1}}`, `[{"op": "copy", "from": "/a~1b/~0", "path": "/c"}]`, `{"a/b":{"~":1},"c":1}`},
		{`{"n":12345678901234567890}`, `[{"op": "test", "path": "/n", "value": 12345678901234567890}, {"op": "add", "path": "/m", "value": 9007199254740993}]`, `{"n":12345678901234567890,"m":9007199254740993}`},
		{`{"a":1}`, `[{"op": "test", "path": "", "value": {"a": 1}}]`, `{"a":1}`},
		{`{"a":1}`, `[]`, `{"a":1}`},
		{`{}`, `[{"op": "add", "path": "/` + strings.Repeat("a", 20) + `", "value": "<é>"}]`, `{"` + strings.Repeat("a", 20) + `":"<é>"}`},
	} {
		f := newFixture(t)
		f.ingest("b", "k", "[C@C1]", func(e *domain.ObjectEvent) { e.Attributes = tc.before })
		p, err := ledger.ParsePatch([]byte(tc.patch))
		require.NoError(t, err, tc.patch)
		id := ledger.RowID{Name: f.name("b", "k"), Row: f.rowsOf("b", "k")[0].ID()}
		row, err := f.Amend(t.Context(), id, p)
		require.NoError(t, err, tc.patch)
		require.JSONEq(t, tc.want, row.Attributes)
		if strings.Contains(tc.want, "9007199254740993") {
			require.Contains(t, row.Attributes, "9007199254740993")
		}
		require.True(t, row.IsCurrent)
		found, err := f.Find(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, row, found)
	}
}

// A patch is atomic: if one of its operations is invalid or fails, the row does not change.
func TestPatch_ThatFailsChangesNothing(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	const before = `{"a":1,"list":[1],"none":null}`
	for _, tc := range []struct{ patch, want string }{
		{`[{"op": "remove", "path": "/a"}]`, "/0/op: want test, add or copy, got \"remove\""},
		{`[{"op": "add", "path": "/b", "value": 1}, {"op": "replace", "path": "/a", "value": 2}]`, "/1/op: want test, add or copy"},
		{`[{"op": "move", "from": "/a", "path": "/b"}]`, "/0/op: want test, add or copy"},
		{`[{"op": "add", "path": "/b", "value": 1}, {"op": "add", "path": "/a", "value": 2}]`, "/1: there is a value at the path, which add does not replace"},
		{`{"attributes": [{"op": "add", "path": "/none", "value": 2}]}`, "/attributes/0: there is a value"},
		{`[{"op": "add", "path": "", "value": {}}]`, "/0: there is a value"},
		{`[{"op": "add", "path": "/list/0", "value": 2}]`, "/0: there is a value"},
		{`[{"op": "copy", "from": "/list", "path": "/a"}]`, "/0: there is a value at the path, which copy does not replace"},
		{`[{"op": "add", "path": "/b", "value": 1}, {"op": "add", "path": "/b", "value": 1}]`, "/1: there is a value"},
		{`[{"op": "add", "path": "/b", "value": 1}, {"op": "test", "path": "/a", "value": 2}]`, "/1: test fails"},
		{`[{"op": "test", "path": "/x", "value": 2}]`, "/0: test fails"},
		{`[{"op": "copy", "from": "/x", "path": "/b"}]`, "/0: copy fails"},
		{`[{"op": "add", "path": "/x/y", "value": 1}]`, "/0: add fails"},
		{`[{"op": "add", "path": "/list/9", "value": 1}]`, "/0: add fails"},
		{`[{"op": "add", "path": "/b", "value": ` + deep(10) + `}]`, "/0: the attributes would have 11 levels"},
		{`[{"op": "add", "path": "/1/2/3/4/5/6/7/8/9/10/11", "value": 1}]`, "/0/path: attributes have up to 10 levels, got 11"},
		{`[{"op": "copy", "from": "/1/2/3/4/5/6/7/8/9/10/11", "path": "/b"}]`, "/0/from: attributes have up to 10 levels"},
		{`[{"op": "add", "path": "/b", "value": ` + deep(30) + `}]`, "levels"},
		{`[{"op": "add", "path": "/b", "value": "` + strings.Repeat("x", 16<<10) + `"}]`, "/0: the attributes would have"},
		{`[{"op": "add", "path": "/b", "value": {"x": 1, "x": 2}}]`, `the name "x" occurs twice`},
		{`[{"op": "add", "op": "test", "path": "/b", "value": 1}]`, `the name "op" occurs twice`},
		{`[{"op": "add", "path": "b", "value": 1}]`, "/0/path: want a JSON pointer"},
		{`[{"op": "add", "path": "/b~2", "value": 1}]`, "/0/path: want ~0 or ~1"},
		{`[{"op": "add", "path": 1, "value": 1}]`, "/0/path: want a string"},
		{`[{"op": "add", "path": "/b"}]`, "/0/value: missing"},
		{`[{"op": "copy", "path": "/b"}]`, "/0/from: missing"},
		{`[{"path": "/b", "value": 1}]`, "/0/op: missing"},
		{`[1]`, "/0: want an object"},
		{`[null]`, "/0: want an object"},
		{`{"attributes": null}`, "/attributes: want an array"},
		{`{"attributes": {}}`, "/attributes: want an array"},
		{`{}`, "want an array of operations, or an object"},
		{`{"attributes": [], "ingestId": []}`, "want an array of operations, or an object"},
		{`null`, "want an array of operations, or an object"},
		{`[`, "want JSON"},
		{``, "want JSON"},
		{`[] []`, "want JSON"},
		{"[" + strings.Repeat(`{"op": "test", "path": "", "value": 1},`, 100) + `{}]`, "at most 100 operations, got 101"},
		{`"` + strings.Repeat("x", 64<<10) + `"`, "bytes; want at most 65536"},
		{`{"ingestId": []}`, "/ingestId: want one operation, got 0"},
		{`{"ingestId": [{"op": "remove", "path": "/"}, {"op": "remove", "path": "/"}]}`, "/ingestId: want one operation, got 2"},
		{`{"ingestId": [{"op": "test", "path": "/", "value": "` + ingestID + `"}]}`, "/ingestId/0/op: want add, replace or remove"},
		{`{"ingestId": [{"op": "add", "path": "/a", "value": "` + ingestID + `"}]}`, "/ingestId/0/path: want /"},
		{`{"ingestId": [{"op": "add", "path": "/", "value": "x"}]}`, "/ingestId/0/value: ingest id: want a UUID"},
		{`{"ingestId": [{"op": "add", "path": "/", "value": null}]}`, "/ingestId/0/value: want a string"},
	} {
		f := newFixture(t)
		f.ingest("b", "k", "[C@C1]", func(e *domain.ObjectEvent) { e.Attributes, e.IngestID = before, ingestID })
		row := f.rowsOf("b", "k")[0]
		p, err := ledger.ParsePatch([]byte(tc.patch))
		if err == nil {
			_, err = f.Amend(t.Context(), ledger.RowID{Name: f.name("b", "k"), Row: row.ID()}, p)
		}
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%.80s: %v", tc.patch, err)
		require.ErrorContains(t, err, tc.want, "%.80s", tc.patch)
		require.Equal(t, row, f.rowsOf("b", "k")[0])
	}
}

func TestPatch_ChangesTheIngestID(t *testing.T) {
	f := newFixture(t)
	f.ingest("b", "k", "[C@C1]")
	row := f.rowsOf("b", "k")[0]
	for _, tc := range []struct{ op, value, want string }{
		{"add", ingestID, ingestID},
		{"replace", strings.ToUpper("1" + ingestID[1:]), "1" + ingestID[1:]},
		{"remove", "", ""},
		{"remove", "", ""},
		{"replace", ingestID, ingestID},
	} {
		p, err := ledger.ParsePatch(fmt.Appendf(nil, `{"ingestId": [{"op": %q, "path": "/", "value": %q}]}`, tc.op, tc.value))
		require.NoError(t, err)
		got, err := f.Amend(t.Context(), ledger.RowID{Name: f.name("b", "k"), Row: row.ID()}, p)
		require.NoError(t, err)
		require.Equal(t, tc.want, got.IngestID)
	}
	p, err := ledger.ParsePatch([]byte(`[]`))
	require.NoError(t, err)
	_, err = f.Amend(t.Context(), ledger.RowID{Name: f.name("b", "other"), Row: row.ID()}, p)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

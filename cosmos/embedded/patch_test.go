package embedded_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestPatch_ChangesTheValuesAtItsPaths(t *testing.T) {
	const before = `{"id":"a","pk":"p","n":1,"o":{"x":1,"y":{"z":2}},"list":[1,2,3],"empty":{},"none":[],"a/b":1}`
	for _, tc := range []struct {
		op, path string
		value    any
		want     string // "" if the patch must fail with 400
	}{
		{"set", "/n", 5, `"n":5`},
		{"set", "/new", "v", `"new":"v"`},
		{"add", "/n", map[string]any{"k": []int{1}}, `"n":{"k":[1]}`},
		{"replace", "/o/y/z", true, `"o":{"x":1,"y":{"z":true}}`},
		{"remove", "/o/x", nil, `"o":{"y":{"z":2}}`},
		{"remove", "/o/y", nil, `"o":{"x":1}`},
		{"remove", "/o/y/z", nil, `"o":{"x":1,"y":{}}`},
		{"set", "/empty/k", 1, `"empty":{"k":1}`},
		{"set", "/o/k", 1, `"o":{"x":1,"y":{"z":2},"k":1}`},
		{"add", "/list/0", 0, `"list":[0,1,2,3]`},
		{"add", "/list/3", 4, `"list":[1,2,3,4]`},
		{"add", "/list/-", 4, `"list":[1,2,3,4]`},
		{"add", "/none/-", 4, `"none":[4]`},
		{"add", "/none/0", 4, `"none":[4]`},
		{"set", "/list/1", 9, `"list":[1,9,3]`},
		{"remove", "/list/2", nil, `"list":[1,2]`},
		{"remove", "/list/0", nil, `"list":[2,3]`},
		{"incr", "/n", 41, `"n":42`},
		{"incr", "/count", 3, `"count":3`},
		{"incr", "/o/x", -3, `"o":{"x":-2,"y":{"z":2}}`},
		{"set", "/a~1b", 2, `"a/b":2`},
		{"add", "/list/4", 4, ""},
		{"set", "/list/x", 4, ""},
		{"set", "/n/x", 4, ""},
		{"replace", "/missing", 4, ""},
		{"remove", "/list/3", nil, ""},
		{"incr", "/list", 1, ""},
		{"set", "/_etag", "x", ""},
		{"set", "no-slash", "x", ""},
		{"set", "/a//b", "x", ""},
	} {
		name := fmt.Sprint(tc.op, " ", tc.path)
		_, c := openEngine(t, embedded.Options{})
		createDocs(t, c, []byte(before))
		patch := patchOf(func(p *azcosmos.PatchOperations) {
			switch tc.op {
			case "set":
				p.AppendSet(tc.path, tc.value)
			case "add":
				p.AppendAdd(tc.path, tc.value)
			case "replace":
				p.AppendReplace(tc.path, tc.value)
			case "remove":
				p.AppendRemove(tc.path)
			case "incr":
				p.AppendIncrement(tc.path, int64(tc.value.(int)))
			}
		})
		answer, err := c.PatchItem(t.Context(), pk, "a", patch, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
		if tc.want == "" {
			require.Equal(t, 400, clientStatus(t, nil, err), name)
			continue
		}
		require.NoError(t, err, name)
		require.True(t, json.Valid(answer.Value), name)
		require.Contains(t, string(answer.Value), tc.want, name)
		read, err := c.ReadItem(t.Context(), pk, "a", nil)
		require.NoError(t, err)
		require.Equal(t, string(answer.Value), string(read.Value), "the answer is the new document")
	}
}

func TestDocument_IsReturnedAsItWasSent(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for sent, want := range map[string]string{
		` { "id" : "a" , "pk" : "p" , "x" : [ 1 , { } ] } `:              `{"id":"a","pk":"p","x":[1,{}],`,
		`{"id":"a","pk":"p","big":9007199254740993}`:                     `"big":9007199254740992,`, // rounded to the nearest double
		`{"id":"a","pk":"p","_etag":"old","_ts":1,"_rid":"x","tail":1}`:  `{"id":"a","pk":"p","tail":1,"_rid":`,
		`{"_self":"x","id":"a","pk":"p","text":"é\u00e9\n\"\\","e":1e2}`: `{"id":"a","pk":"p","text":"é\u00e9\n\"\\","e":100,`,
		`{"id":"a","pk":"p","long":"` + strings.Repeat("x", 9000) + `"}`: `xxx","_rid":`,
	} {
		_, err := c.UpsertItem(t.Context(), pk, []byte(sent), nil)
		require.NoError(t, err)
		read, err := c.ReadItem(t.Context(), pk, "a", nil)
		require.NoError(t, err)
		require.Contains(t, string(read.Value), want)
		require.True(t, json.Valid(read.Value))
	}
}

func TestPatch_MovesAValue(t *testing.T) {
	const before = `{"id":"a","pk":"p","n":1,"o":{"x":1,"y":{"z":2}},"list":[1,2]}`
	for _, tc := range []struct{ from, path, want string }{
		{"/n", "/m", `"o":{"x":1,"y":{"z":2}},"list":[1,2],"m":1`},
		{"/o/y", "/o/w", `"o":{"x":1,"w":{"z":2}}`},
		{"/o/x", "/n", `"n":1,"o":{"y":{"z":2}}`},
		{"/list/0", "/list/-", `"list":[2,1]`},
		{"/n", "/list/0", `"list":[1,1,2]`},
		{"/missing", "/m", ""},
		{"/n", "/none/m", ""},
		{"/o", "/o/y/z", ""},
		{"/o", "/o", ""},
		{"/pk", "/m", ""},
		{"/n", "/pk", ""},
		{"/id", "/m", ""},
	} {
		engine, c := openEngine(t, embedded.Options{})
		createDocs(t, c, []byte(before))
		body := fmt.Sprintf(`{"operations":[{"op":"move","from":%q,"path":%q}]}`, tc.from, tc.path)
		answer, text := sendRequest(t, engine, signedRequest(t, engine, "PATCH", docsPath+"/a", "docs", containerLink+"/docs/a", body, inP, `["p"]`))
		if tc.want == "" {
			require.Equal(t, 400, answer.StatusCode, body)
			continue
		}
		require.Equal(t, 200, answer.StatusCode, text)
		require.Contains(t, text, tc.want)
	}
}

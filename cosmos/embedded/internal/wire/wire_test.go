package wire

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// The test vector is from Microsoft's documentation of access control.
func TestSignature_IsThatOfTheDocumentation(t *testing.T) {
	e, err := engine.Open(disk.NewMemory(), engine.Options{})
	require.NoError(t, err)
	s, err := New(e, Options{Key: "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==", Consistency: "Session"})
	require.NoError(t, err)
	r := &serverRequest{Request: httptest.NewRequest(http.MethodGet, "/dbs/ToDoList", nil), segments: []string{"dbs", "ToDoList"}}
	require.Equal(t, "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=", s.signRequest(r, "Thu, 27 Apr 2017 00:51:12 GMT"))
}

func TestSessionToken_RoundTripsAndOtherTextsAreRefused(t *testing.T) {
	for text, want := range map[string]uint64{sessionToken(&engine.Range{ID: "3"}, 7): 7, "0:-1#3,0:-1#9,0:-1#4": 9, "0#5": 5} {
		got, err := parseSession(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"x", "0:-1#", "0:-1#-4", "0:-1#1,", "#99999999999999999999"} {
		_, err := parseSession(text)
		require.Error(t, err, text)
	}
}

// FuzzBatch parses arbitrary bodies as batches. Each must be refused or contain operations.
func FuzzBatch(f *testing.F) {
	for _, s := range []string{
		`[{"operationType":"Create","resourceBody":{"id":"a","pk":"p"}}]`,
		`[{"operationType":"Patch","id":"a","ifMatch":"\"x\"","resourceBody":{"operations":[{"op":"set","path":"/a","value":1}]}}]`,
		`[{"operationType":"Delete","id":"a"},{"operationType":"Read","id":"b"}]`, `[]`, `[{}]`, `{`, `[1,2]`, `[{"operationType":"Create"}]`,
	} {
		f.Add([]byte(s))
	}
	e, err := engine.Open(disk.NewMemory(), engine.Options{Clock: time.Now})
	require.NoError(f, err)
	_, err = e.CreateDatabase(f.Context(), []byte(`{"id":"db"}`), engine.Throughput{})
	require.NoError(f, err)
	c, err := e.CreateContainer(f.Context(), "db", []byte(`{"id":"c","partitionKey":{"paths":["/pk"]}}`), engine.Throughput{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		ops, at, err := parseBatch(t.Context(), c, `["p"]`, body, false)
		if err == nil {
			require.NotEmpty(t, ops)
			return
		}
		require.Less(t, at, max(1, len(ops)))
	})
}

package wire

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// A testAccount is an account with a container, called without a network.
type testAccount struct{ s *Server }

func newTestAccount(t testing.TB) testAccount {
	e, err := engine.Open(disk.NewMemory(), engine.Options{Clock: time.Now})
	require.NoError(t, err)
	s, err := New(e, Options{Key: "a2V5", Consistency: "Session"})
	require.NoError(t, err)
	f := testAccount{s}
	f.sendRequest(t, http.MethodPost, "/dbs", `{"id":"db"}`)
	f.sendRequest(t, http.MethodPost, "/dbs/db/colls", `{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}`)
	return f
}

// sendRequest sends a signed request. Header values may be any text.
func (f testAccount) sendRequest(t testing.TB, method, path, body string, header ...string) Response {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("x-ms-date", date)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	segments, err := splitPath(r.URL)
	require.NoError(t, err)
	r.Header.Set("Authorization", "type=master&ver=1.0&sig="+f.s.signRequest(&serverRequest{Request: r, segments: segments}, date))
	return f.s.Serve(r, EndpointOptions{})
}

// FuzzEtagHeader sends arbitrary text as If-Match. The document must be replaced if the text is its etag, * or empty,
// and must not change otherwise. As If-None-Match of a change feed, the text must be a position or be refused.
func FuzzEtagHeader(f *testing.F) {
	const docs, pk = "/dbs/db/colls/c/docs", "x-ms-documentdb-partitionkey"
	account := newTestAccount(f)
	etag := account.sendRequest(f, http.MethodPost, docs, `{"id":"a","pk":"p"}`, pk, `["p"]`).Header.Get("Etag")
	for _, s := range []string{
		etag, strings.Trim(etag, `"`), "*", "", `"`, `""`, `W/` + etag, etag + ", " + etag, strings.ToUpper(etag), "1", `"7"`, `"-1"`, "99999999999999999999", "\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		read := func() Response { return account.sendRequest(t, http.MethodGet, docs+"/a", "", pk, `["p"]`) }
		before := read().Header.Get("Etag")
		written := account.sendRequest(t, http.MethodPut, docs+"/a", `{"id":"a","pk":"p"}`, pk, `["p"]`, "If-Match", header)
		if header == "" || header == "*" || header == before {
			require.Equal(t, http.StatusOK, written.Status)
			require.NotEqual(t, before, read().Header.Get("Etag"))
		} else {
			require.Equal(t, http.StatusPreconditionFailed, written.Status)
			require.Equal(t, before, read().Header.Get("Etag"))
		}
		batch := fmt.Sprintf(`[{"operationType":"Delete","id":"a","ifMatch":%q}]`, "not"+before)
		require.Equal(t, http.StatusMultiStatus, account.sendRequest(t, http.MethodPost, docs, batch, pk, `["p"]`,
			"x-ms-cosmos-is-batch-request", "True", "x-ms-cosmos-batch-atomic", "True", "x-ms-cosmos-batch-ordered", "True").Status)
		feed := account.sendRequest(t, http.MethodGet, docs, "", "A-IM", "Incremental Feed", "If-None-Match", header)
		require.Contains(t, []int{http.StatusOK, http.StatusNotModified, http.StatusBadRequest}, feed.Status)
		if feed.Status != http.StatusBadRequest { // unless refused, the response has a valid etag
			next := account.sendRequest(t, http.MethodGet, docs, "", "A-IM", "Incremental Feed", "If-None-Match", feed.Header.Get("Etag"))
			require.Contains(t, []int{http.StatusOK, http.StatusNotModified}, next.Status)
		}
	})
}

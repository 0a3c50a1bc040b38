package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

const watchHub = "https://hub.example.org"

// serveWatches starts a server with watches on a store in memory. The server calls no receivers.
func serveWatches(t *testing.T) *hubFixture {
	t.Helper()
	base, err := domain.ParseResourceBase(watchHub)
	require.NoError(t, err)
	cursors, resources := memory.NewCursors(time.Now), memory.NewResources(time.Now)
	watches := watch.New(watch.Ports{
		Watches: memory.NewWatches(cursors), Resources: resources, Changes: resources, Cursors: cursors,
		Streams: memory.NewStreams(repository.MessageRetention, time.Now), Bundles: memory.New(memory.Options{}),
	}, watch.Options{Base: base})
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.Watches = watches })
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return f
}

// requestAsActor sends a request of an actor, and returns the response and its body.
func (f *hubFixture) requestAsActor(method, path, body string, headers ...string) (*http.Response, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f.t, err)
	req.Header.Set("X-Actor-Id", "5790001330552")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(req)
	require.NoError(f.t, err)
	defer resp.Body.Close()
	text := new(strings.Builder)
	_, err = io.Copy(text, resp.Body)
	require.NoError(f.t, err)
	return resp, text.String()
}

func TestAWatch_IsCreatedShownListedAndDeleted(t *testing.T) {
	f := serveWatches(t)
	resp, body := f.requestAsActor(http.MethodPut, "/v1/resources/prices", `{"a": 1}`)
	require.Equal(t, http.StatusCreated, resp.StatusCode, body)
	const watchesPath, draft = "/v1/_notifications/watch", `{"resource": "` + watchHub + `/v1/resources/prices", "callback": "https://example.com/x"}`
	resp, body = f.requestAsActor(http.MethodPost, watchesPath, strings.ReplaceAll(draft, "/v1/resources/prices", "/broker/channel/c"))
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode, body)
	resp, body = f.requestAsActor(http.MethodPost, watchesPath, draft, "Authorization", "Bearer wrong")
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode, body)
	resp, body = f.requestAsActor(http.MethodPost, watchesPath, draft, "Authorization", "Basic b2YgYSBwcm94eQ==")
	require.Equal(t, http.StatusSeeOther, resp.StatusCode, body)
	resp, _ = f.requestAsActor(http.MethodDelete, resp.Header.Get("Location"), "")
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	resp, body = f.requestAsActor(http.MethodPost, watchesPath, draft)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode, body)
	at := resp.Header.Get("Location")
	resp, body = f.requestAsActor(http.MethodGet, at, "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, `"resource":"`+watchHub+`/v1/resources/prices","callback":"https://example.com/x","created":`)
	require.Contains(t, body, `"count_triggered":0,"count_delivered":0,"count_errored":0`)
	resp, body = f.requestAsActor(http.MethodPut, at, strings.ReplaceAll(draft, "/x", "/y"))
	require.Equal(t, http.StatusNoContent, resp.StatusCode, body)
	resp, body = f.requestAsActor(http.MethodGet, watchesPath+"?offset=0&count=1", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, body, `{"offset":0,"count":1,"items":[{"id":"`+strings.TrimPrefix(at, watchesPath+"/")+`"`)
	require.Contains(t, body, "https://example.com/y")
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		text := ""
		if method == http.MethodPut {
			text = draft
		}
		resp, body = f.requestAsActor(method, at, text, "X-Actor-Id", "other")
		require.Equal(t, http.StatusNotFound, resp.StatusCode, body)
	}
	resp, _ = f.requestAsActor(http.MethodDelete, at, "")
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	for _, path := range []string{at, watchesPath + "/x", watchesPath + "/019abcde-7a52-7d57-9d0c-3f1e6b8a2c41"} {
		resp, body = f.requestAsActor(http.MethodDelete, path, "")
		require.Equal(t, http.StatusNotFound, resp.StatusCode, body)
	}
}

func TestAWatch_ShowsItsCalls(t *testing.T) {
	f := serveWatches(t)
	resp, body := f.requestAsActor(http.MethodPost, "/v1/_notifications/watch?absent=allow", `{"resource": "`+watchHub+`/v1/resources/a", "callback": "https://example.org/x"}`)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode, body)
	at := resp.Header.Get("Location")
	resp, body = f.requestAsActor(http.MethodGet, at+"/attempts", "")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.JSONEq(t, `{"attempts": []}`, body)
	resp, _ = f.requestAsActor(http.MethodGet, at+"/attempts?x=1", "")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	resp, _ = f.requestAsActor(http.MethodGet, at[:len(at)-1]+"/attempts", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

func TestABadWatch_IsNamedByItsPointer(t *testing.T) {
	f := serveWatches(t)
	const good = `"callback": "https://example.com/x"`
	for body, want := range map[string][]string{
		`{` + good + `}`: {`/resource`, "missing"},
		`{"resource": "` + watchHub + `/v1/resources/a"}`:                                              {`/callback`, "missing"},
		`{"resource": 1, ` + good + `}`:                                                                {`/resource`, "want a string"},
		`{"resource": "` + watchHub + `/v1/resources/a", ` + good + `, "created": 1}`:                  {`/created`, "the hub sets it"},
		`{"resource": "` + watchHub + `/v1/resources/a", ` + good + `, "count_errored": 0}`:            {`/count_errored`, "the hub sets it"},
		`{"resource": "` + watchHub + `/v1/resources/a", ` + good + `, "x": 0}`:                        {`/x`, "unknown field"},
		`{"resource": "` + watchHub + `/v1/resources/a", ` + good + `, ` + good + `}`:                  {`/callback`, "twice"},
		`{"resource": "/v1/resources/a", ` + good + `}`:                                                {`/resource`, "absolute"},
		`{"resource": "https://example.com/v1/resources/a", ` + good + `}`:                             {`/resource`, "of this hub"},
		`{"resource": "` + watchHub + `/v1/resources/a?x=1", ` + good + `}`:                            {`/resource`, "no query"},
		`{"resource": "` + watchHub + `/v1/peek", ` + good + `}`:                                       {`/resource`, "cannot be watched"},
		`{"resource": "` + watchHub + `/v1/resources/a", "callback": "x"}`:                             {`/callback`, "http"},
		`{"resource": "` + watchHub + `/v1/resources/a", "callback": "` + watchHub + `/v1/resources"}`: {`/callback`, "this hub"},
	} {
		resp, text := f.requestAsActor(http.MethodPost, "/v1/_notifications/watch", body)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, body)
		for _, part := range want {
			require.Contains(t, text, part, body)
		}
	}
	for _, query := range []string{"?absent=yes", "?x=1"} {
		resp, _ := f.requestAsActor(http.MethodPost, "/v1/_notifications/watch"+query, `{}`)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	}
	for _, query := range []string{"?offset=-1", "?count=0", "?count=101", "?count=x", "?size=1"} {
		resp, _ := f.requestAsActor(http.MethodGet, "/v1/_notifications/watch"+query, "")
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	}
	resp, _ := f.requestAsActor(http.MethodPost, "/v1/_notifications/watch", `{"resource": "`+strings.Repeat("x", 1<<16)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	resp, _ = f.requestAsActor(http.MethodPost, "/v1/_notifications/watch", `{"resource": "`+watchHub+`/v1/resources/none", `+good+`}`)
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

func TestADocument_IsPutReadAndDeletedByItsETag(t *testing.T) {
	f := serveWatches(t)
	const path = "/v1/resources/price.list"
	resp, _ := f.requestAsActor(http.MethodGet, path, "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	resp, _ = f.requestAsActor(http.MethodPut, path, `{"a": "é"}`, "If-None-Match", "*")
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	require.Equal(t, path, resp.Header.Get("Location"))
	first := resp.Header.Get("ETag")
	resp, body := f.requestAsActor(http.MethodGet, "/v1/resources/price%2Elist", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, `{"a": "é"}`, body)
	require.Equal(t, first, resp.Header.Get("ETag"))
	resp, _ = f.requestAsActor(http.MethodPut, path, `2`, "If-None-Match", "*")
	require.Equal(t, http.StatusPreconditionFailed, resp.StatusCode)
	resp, _ = f.requestAsActor(http.MethodPut, path, `2`, "If-Match", first)
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	require.NotEqual(t, first, resp.Header.Get("ETag"))
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		text := ""
		if method == http.MethodPut {
			text = "3"
		}
		resp, _ = f.requestAsActor(method, path, text, "If-Match", first)
		require.Equal(t, http.StatusPreconditionFailed, resp.StatusCode)
	}
	resp, _ = f.requestAsActor(http.MethodDelete, path, "", "If-Match", "*")
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	resp, _ = f.requestAsActor(http.MethodDelete, path, "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	resp, _ = f.requestAsActor(http.MethodPut, path, `1`, "If-Match", "*")
	require.Equal(t, http.StatusPreconditionFailed, resp.StatusCode)
}

func TestABadDocument_IsRefused(t *testing.T) {
	f := serveWatches(t)
	for _, tc := range []struct {
		path, body string
		status     int
		headers    []string
	}{
		{"/v1/resources/a", `{`, 400, nil},
		{"/v1/resources/a", "\"\xff\"", 400, nil},
		{"/v1/resources/a", `{}`, 415, []string{"Content-Type", "text/plain"}},
		{"/v1/resources/a", `"` + strings.Repeat("x", 1<<16) + `"`, 413, nil},
		{"/v1/resources/" + strings.Repeat("a", 65), `{}`, 400, nil},
		{"/v1/resources/a%20b", `{}`, 400, nil},
		{"/v1/resources/a?x=1", `{}`, 400, nil},
		{"/v1/resources/a", `{}`, 400, []string{"If-None-Match", `"x"`}},
	} {
		resp, body := f.requestAsActor(http.MethodPut, tc.path, tc.body, tc.headers...)
		require.Equal(t, tc.status, resp.StatusCode, "%s: %s", tc.path, body)
	}
	resp, _ := f.requestAsActor(http.MethodGet, "/v1/resources/a", "")
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}

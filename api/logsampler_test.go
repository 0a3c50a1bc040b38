package api_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// countLines counts the lines of the log that contain text.
func (l *logCapture) countLines(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func TestLog_SamplesAFloodOfRefusedRequestsAndCountsTheRest(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := newFixture(t, func(o *api.Options, _ *hub.Options) { o.Clock = func() time.Time { return now } })
	const refused = `"route":"/v1/peek","status":"401"`
	for range 100 {
		require.Equal(t, 401, f.serveOnce("GET", "/v1/peek"))
	}
	require.Equal(t, 20, f.logs.countLines(refused))
	require.Equal(t, 404, f.serveOnce("GET", "/v9"))
	require.Equal(t, 200, f.serveOnce("GET", "/openapi.json"))
	require.Equal(t, 1, f.logs.countLines(`"route":"unmatched","status":"404"`), "another kind")
	require.Equal(t, 1, f.logs.countLines(`"route":"/openapi.json","status":"200"`))
	require.Zero(t, f.logs.countLines("left_out"))

	now = now.Add(10 * time.Second)
	require.Equal(t, 401, f.serveOnce("GET", "/v1/peek"))
	require.Equal(t, 1, f.logs.countLines(refused+`,"left_out":80`))
	require.Equal(t, 22, f.logs.countLines(refused), "with the line that counts")

	for range 50 {
		f.serveOnce("GET", "/v1/peek")
	}
	f.server.SetDraining()
	require.Equal(t, 1, f.logs.countLines(refused+`,"left_out":31`), "nothing is lost at the end")
}

// serveOnce serves a request without a connection and returns the status.
func (f *hubFixture) serveOnce(method, path string) int {
	w := httptest.NewRecorder()
	req := httptest.NewRequest(method, path, nil)
	req.Host = "127.0.0.1"
	f.server.Handler().ServeHTTP(w, req)
	return w.Code
}

package api_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/loglevel"
	"github.com/messagehub/messagehub/domain/hub"
)

const logLevelPath = "/v1/admin/log-level"

// serveLogLevel starts a server whose log level follows a clock that the test sets.
func serveLogLevel(t *testing.T) (f *hubFixture, level *loglevel.Level, now *time.Time) {
	t.Helper()
	now = new(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	level = loglevel.New(slog.LevelInfo, func() time.Time { return *now })
	f = serve(t, func(o *api.Options, _ *hub.Options) { o.LogLevel = level })
	return f, level, now
}

func TestLogLevel_ChangesForAWhile(t *testing.T) {
	f, level, now := serveLogLevel(t)
	require.JSONEq(t, `{"level":"info","configured":"info"}`, f.do("GET", logLevelPath, "").wants(200).body)
	changed := f.do("PUT", logLevelPath, `{"level":"debug","for":"30m","who":"kim","why":"ticket 4711"}`).wants(200).body
	require.JSONEq(t, `{"level":"debug","configured":"info","until":"2030-01-01T00:30:00Z"}`, changed)
	require.JSONEq(t, changed, f.do("GET", logLevelPath, "").wants(200).body)
	require.Equal(t, slog.LevelDebug, level.Level())
	f.logs.wait(t, `"level":"WARN","msg":"operator's order carried out","what":"log-level","who":"kim","why":"ticket 4711","before":"info","after":"debug"`)

	*now = now.Add(30 * time.Minute)
	require.JSONEq(t, `{"level":"info","configured":"info"}`, f.do("GET", logLevelPath, "").wants(200).body)
	require.Equal(t, slog.LevelInfo, level.Level())

	require.Contains(t, f.do("PUT", logLevelPath, `{"level":"warn","who":"kim","why":"x"}`).wants(200).body, `"until":"2030-01-01T00:40:00Z"`)
	require.JSONEq(t, `{"level":"info","configured":"info"}`, f.do("PUT", logLevelPath, `{"level":"info","who":"kim","why":"x"}`).wants(200).body)
	require.Equal(t, slog.LevelInfo, level.Level())
}

func TestLogLevel_RefusesInvalidOrders(t *testing.T) {
	f, level, _ := serveLogLevel(t)
	for _, body := range []string{
		`{}`, `{"level":"debug"}`, `{"level":"debug","who":"kim"}`, `{"level":"debug","why":"x"}`,
		`{"level":"DEBUG","who":"kim","why":"x"}`, `{"level":"trace","who":"kim","why":"x"}`, `{"level":1,"who":"kim","why":"x"}`,
		`{"level":"debug","for":"0s","who":"kim","why":"x"}`, `{"level":"debug","for":"-1m","who":"kim","why":"x"}`,
		`{"level":"debug","for":"24h1s","who":"kim","why":"x"}`, `{"level":"debug","for":"always","who":"kim","why":"x"}`,
		`{"level":"debug","who":" ","why":"x"}`, `{"level":"debug","who":"kim","why":"two\nlines"}`,
		`{"level":"debug","who":"kim","why":"x","more":1}`, `{"level":"debug","level":"info","who":"kim","why":"x"}`,
	} {
		f.do("PUT", logLevelPath, body).problem(400, "invalid")
	}
	f.do("PUT", logLevelPath, `debug`).problem(400, "not-json")
	f.do("PUT", logLevelPath+"?for=1h", `{"level":"debug","who":"kim","why":"x"}`).problem(400, "invalid")
	f.do("GET", logLevelPath+"?x=1", "").problem(400, "invalid")
	f.do("PUT", logLevelPath, `{"level":"debug","who":"kim","why":"x"}`, "Authorization", "").problem(401, "missing-token")
	require.Equal(t, slog.LevelInfo, level.Level())
}

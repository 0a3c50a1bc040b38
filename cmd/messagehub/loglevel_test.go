package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogLevel_IsChangedForAWhile(t *testing.T) {
	h := startHub(t, "--in-memory")
	levelOf := func(args ...string) result {
		return messagehub(t, "", append([]string{"log-level", "--url", h.url(t)}, args...)...)
	}
	require.Equal(t, result{0, "info\n", ""}, levelOf())
	require.NotContains(t, h.stderrText(), `"level":"DEBUG"`)

	changed := levelOf("debug", "--for", "1h", "--who", "kim", "--why", "ticket 4711")
	require.Equal(t, 0, changed.status, changed.err)
	require.Regexp(t, `^debug until 20\S+Z, then info\n$`, changed.out)
	h.await(t, `"what":"log-level","who":"kim","why":"ticket 4711","before":"info","after":"debug"`)
	require.Equal(t, 0, messagehub(t, "", "health", "--url", h.url(t)).status)
	h.await(t, `"level":"DEBUG","msg":"request"`)
	require.NotContains(t, h.stderrText(), `"msg":"azure"`, "the clients of Azure log from the start, or not")

	require.Equal(t, result{0, "info\n", ""}, levelOf("info", "--why", "x"))
	require.JSONEq(t, `{"level":"info","configured":"info"}`, levelOf("--json").out)
}

func TestLogLevel_RefusesWrongCommandLines(t *testing.T) {
	for want, args := range map[string]string{
		`LEVEL: want debug, info, warn, error, got "trace"`:       "trace --why x",
		"want one LEVEL, or none":                                 "debug info",
		"--why is missing; say why, for the record":               "debug",
		"--for: want a time from 1s to 24h, got 0s":               "debug --why x --for 0s",
		"--for: want a time from 1s to 24h, got 25h0m0s":          "debug --why x --for 25h",
		"--for, --why and --who: want a LEVEL, too":               "--for 1h",
		`--url: want the address of a hub such as http://127.0.0`: "--url nowhere",
	} {
		got := messagehub(t, "", append([]string{"log-level"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, got.status, args)
		require.Contains(t, got.err, want)
	}
}

func TestServe_LogsTheClientsOfAzureAtDebugLevel(t *testing.T) {
	h := startHub(t, "--in-memory", "--log-level", "debug")
	h.await(t, `"msg":"azure","event":"Request"`)
	h.await(t, `Authorization: REDACTED`)
}

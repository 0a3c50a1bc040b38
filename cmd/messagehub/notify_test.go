package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotify_RejectsUnusableSettings(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, tc := range []struct {
		environ, args []string
		status        int
		want          string
	}{
		{nil, []string{"--for", "70s", "--data", none}, 2, "--for: want more than 1m10s, got 1m10s: a call takes up to 30s (push.timeout), and its outcome has to be stored\nmessagehub: see messagehub notify --help"},
		{[]string{"MESSAGEHUB_PUSH_TIMEOUT=5m"}, []string{"--data", none}, 2, "--for: want more than 5m40s, got 5m0s: a call takes up to 5m0s (push.timeout), and its outcome has to be stored\nmessagehub: see messagehub notify --help"},
		{nil, []string{"now"}, 2, "unknown command \"now\" for \"messagehub notify\"\nmessagehub: see messagehub notify --help"},
		{nil, []string{"--data", none}, 1, "data folder " + none + ": no hub has kept anything there; name its folder with --data"},
		{[]string{"MESSAGEHUB_IN_MEMORY=true"}, nil, 1, "in-memory = true: such a hub stores nothing; it calls its receivers itself while it runs"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), &process{args: append([]string{"messagehub", "notify"}, tc.args...), environ: tc.environ, in: strings.NewReader(""), out: &out, err: &errs})
		require.Equal(t, result{tc.status, "", "messagehub: " + tc.want + "\n"}, result{status, out.String(), errs.String()})
	}
	require.NoDirExists(t, none)
}

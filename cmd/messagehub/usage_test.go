package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A wrong value must cause exit status 2 and a hint to the help, whichever
// command or layer rejects it.
func TestCommands_ExitWith2ForAWrongValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(file, []byte("listen: nope\n"), 0o600))
	certificate := []string{"MESSAGEHUB_TLS_CERT=" + file, "MESSAGEHUB_TLS_KEY=" + file}
	for _, tc := range []struct {
		environ []string
		command string
		want    string
	}{
		{nil, "serve --listen nope", `listen = "nope" (--listen): want HOST:PORT, such as 127.0.0.1:8080`},
		{nil, "serve --config " + file, `listen = "nope" (` + file + ` line 1): want HOST:PORT, such as 127.0.0.1:8080`},
		{nil, "serve --config nowhere", "cannot read the configuration file: open nowhere: no such file or directory; check the path in --config or MESSAGEHUB_CONFIG"},
		{nil, "serve --dev-issuer=nope", `--dev-issuer: want an address of this machine alone, such as 127.0.0.1:8082, got "nope"`},
		{[]string{"MESSAGEHUB_LISTN=x"}, "serve", "MESSAGEHUB_LISTN (in the environment): no such key; did you mean MESSAGEHUB_LISTEN?"},
		{certificate, "serve --in-memory --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0", "read the certificate of the server: tls: failed to find any PEM data in certificate input; tls.cert and tls.key need PEM files that belong together"},
		{nil, "check --config " + file, ""},
		{nil, "backup archive --config " + file, ""},
		{nil, "provision --config " + file, ""},
		{nil, "upgrade --config " + file, ""},
		{nil, "destroy --config " + file, ""},
		{nil, "notify --config " + file, ""},
		{nil, "health --config " + file, ""},
		{nil, "config print --config " + file, ""},
		{[]string{"MESSAGEHUB_CONFIG=" + file}, "queue list", ""},
		{[]string{"MESSAGEHUB_CONFIG=" + file}, "queue show a", ""},
		{[]string{"MESSAGEHUB_CONFIG=" + file}, "token --actor a", ""},
		{nil, "queue list --ca nowhere", "--ca: open nowhere: no such file or directory"},
		{nil, "queue show a --token-file nowhere", "--token-file: open nowhere: no such file or directory"},
		{nil, "queue list --limit many", `--limit: want a whole number, got "many"`},
		{nil, "emulator cosmos --seed x", `--seed: want a whole number of at least 0, got "x"`},
		{nil, "serve --in-memory=perhaps", `in-memory = "perhaps" (--in-memory): want true or false`},
	} {
		got := runWith(t, tc.environ, strings.Fields(tc.command)...)
		require.Equal(t, 2, got.status, "%s\n%s", tc.command, got.err)
		lines := strings.Split(strings.TrimSuffix(got.err, "\n"), "\n")
		require.Regexp(t, `^messagehub: see messagehub [a-z ]+ --help$`, lines[len(lines)-1], tc.command)
		if tc.want != "" {
			require.Equal(t, "messagehub: "+tc.want, lines[0], tc.command)
		}
	}
}

func TestCommands_ExitWith1ForWhatACheckFinds(t *testing.T) {
	for _, command := range []string{"config check --listen nope", "doctor --listen nope"} {
		got := messagehub(t, "", strings.Fields(command)...)
		require.Equal(t, 1, got.status, command)
		require.Contains(t, got.out, `listen = "nope" (--listen): want HOST:PORT`)
	}
	require.Contains(t, messagehub(t, "", "--help").out, statusHelp)
}

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hub with a development issuer prints commands when it starts. These
// commands must work as printed, and requests without a token must fail.
func TestServe_WithDevIssuerAcceptsTokensOnly(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a folder")
	h := startWatchedHub(t, []string{tokenVariable + "=" + operatorToken}, "--dev-issuer=127.0.0.1:0", "--data", folder)
	commands := h.commands(t)
	require.Len(t, commands, 4)
	said, _, err := shell(t, strings.Join(commands, "\n"))
	require.NoError(t, err, said)
	require.Contains(t, said, "1 accepted, 0 duplicates, 0 conflicts")
	require.Contains(t, said, "\ndequeued ")
	_, said, err = shell(t, commands[2])
	require.Error(t, err)
	require.Contains(t, said, "The request shows no token.")
	require.Regexp(t, "messagehub: this command sent no token to http://127.0.0.1:[0-9]+; set MESSAGEHUB_TOKEN to a token of the issuer, or name a file that holds one with --token-file\n", said)
	info, err := os.Stat(filepath.Join(folder, "dev-issuer.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	token := messagehub(t, "", "token", "--data", folder, "--role", "operator.read", "--subject", "kim").out
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	r := messagehub(t, "", "queue", "show", "5790001330552", "--url", h.url(t), "--token-file", file)
	require.Equal(t, exitNoData, r.status, r.err)
	r = messagehub(t, "", "queue", "freeze", "5790001330552", "--why", "test", "--url", h.url(t), "--token-file", file)
	require.Equal(t, 1, r.status)
	require.Contains(t, r.err, "The token lacks the role operator.")
	r = messagehub(t, "", "broker", "list", "channels", "--url", h.url(t), "--token-file", file)
	require.Equal(t, result{0, "there are no channels\n", ""}, r)
	r = messagehub(t, "", "broker", "put", "channel", "prices", "--token", "hush", "--url", h.url(t), "--operator-token-file", file)
	require.Contains(t, r.err, "The credentials are wrong (403)", "who may look may not put")
	orders := messagehub(t, "", "token", "--data", folder, "--role", "operator").out
	require.NoError(t, os.WriteFile(file, []byte(orders), 0o600))
	r = messagehub(t, "", "broker", "put", "channel", "prices", "--token", "hush", "--url", h.url(t), "--operator-token-file", file)
	require.Equal(t, result{0, "created channel prices\n", ""}, r)
	actor := messagehub(t, "", "token", "--data", folder, "--actor", "5790001330552").out
	r = runWith(t, []string{ownTokenVariable + "=" + strings.TrimSpace(actor)}, "peek", "--url", h.url(t))
	require.Equal(t, result{3, "", "no data waits for the actor of the token\n"}, r)
	r = runWith(t, []string{ownTokenVariable + "=" + strings.TrimSpace(orders)}, "broker", "messages", "prices", "--url", h.url(t))
	require.Equal(t, 0, r.status, r.err)
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	require.NotContains(t, h.stderrText(), strings.TrimSpace(token))
}

func TestServe_RefusesDevIssuerBeyondLoopback(t *testing.T) {
	for name, args := range map[string][]string{
		"a hub for others":                {"serve", "--in-memory", "--insecure", "--listen", "0.0.0.0:0", "--dev-issuer=127.0.0.1:0"},
		"a hub for others, by mistake":    {"serve", "--in-memory", "--listen", "0.0.0.0:8080", "--dev-issuer"},
		"operators of other machines":     {"serve", "--in-memory", "--admin-listen", "0.0.0.0:8081", "--dev-issuer"},
		"an issuer for others":            {"serve", "--in-memory", "--listen", "127.0.0.1:0", "--dev-issuer=0.0.0.0:0"},
		"an issuer beside another issuer": {"serve", "--in-memory", "--config", issuerFile(t), "--dev-issuer=127.0.0.1:0"},
	} {
		r := messagehub(t, "", args...)
		require.NotZero(t, r.status, name)
		require.Contains(t, r.err, "dev-issuer", name)
		require.NotContains(t, r.err, "actors are not authenticated", name)
		if strings.Contains(strings.Join(args, " "), "listen 0.0.0.0") {
			require.Contains(t, r.err, "the development issuer is for this machine alone, so a hub that trusts it must not be reached from outside", name)
		}
	}
}

// issuerFile writes a configuration file that names an issuer, and returns its
// path.
func issuerFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(file, []byte("oidc: {issuer: 'https://issuer.example', audience: hub}\n"), 0o600))
	return file
}

func TestToken_IsRefusedWithoutAPurpose(t *testing.T) {
	for want, args := range map[string][]string{
		"permits nothing":               {"token"},
		"--actor: ":                     {"token", "--actor", "Jørgen"},
		"--domain: ":                    {"token", "--domain", ""},
		"--role: want operator":         {"token", "--role", "actor"},
		"--lifetime: want 1s to 24h0m0": {"token", "--role", "operator", "--lifetime", "48h"},
		"has no development issuer":     {"token", "--role", "operator", "--data", t.TempDir()},
	} {
		r := messagehub(t, "", args...)
		require.NotZero(t, r.status)
		require.Contains(t, r.err, want)
	}
}

func TestAccess_ReportsFaultsOfItsFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, args := range map[string][]string{
		"--token-file: " + empty + " has no secret": {"peek", "--token-file", empty},
		"has no certificate in PEM":                 {"peek", "--ca", empty, "--actor", "a"},
		"a certificate needs its key":               {"peek", "--cert", empty, "--actor", "a"},
		"--cert and --key: ":                        {"peek", "--cert", empty, "--key", empty, "--actor", "a"},
		"--actor is missing":                        {"peek"},
	} {
		r := messagehub(t, "", args...)
		require.Equal(t, 2, r.status, want)
		require.Contains(t, r.err, want)
	}
}

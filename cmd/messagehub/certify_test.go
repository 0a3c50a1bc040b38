package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/certify"
)

func TestCertify_RefusesAWrongCommandLine(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o600))
	const ok = "https://8.8.8.8/"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "want one URL, the address of the receiver"},
		{[]string{"http://8.8.8.8/"}, "URL: want https, or --insecure-http"},
		{[]string{"https://127.0.0.1/"}, "URL: 127.0.0.1 may not be called; use a public address, or allow its range with --allow; a hub needs push.allow for it"},
		{[]string{"https://169.254.169.254/", "--allow", "169.254.0.0/16"}, "URL: 169.254.169.254 may not be called; use a public address, or allow its range with --allow; a hub needs push.allow for it"},
		{[]string{ok, "--allow", "here"}, `--allow: want a range of addresses such as 10.0.0.0/8, got "here"`},
		{[]string{ok, "--method", "GET"}, `--method: want POST or PUT, got "GET"`},
		{[]string{ok, "--encoding", "text/plain"}, `--encoding: want application/json or multipart/form-data, got "text/plain"`},
		{[]string{ok, "--timeout", "1ms"}, "--timeout: want a time from 1s to 1h, got 1ms"},
		{[]string{ok, "--type="}, "--type: want a type of event"},
		{[]string{ok, "--payload", text}, "--payload: " + text + " is not JSON"},
		{[]string{ok, "--hmac-key", "hush", "--hmac-key", "hush-hush"}, "--hmac-key: want one key: a call has one Authorization header"},
		{[]string{ok, "--secret", "whpk_hush"}, "--secret: number 1 is a public key, which cannot sign; give the private key (whsk_)"},
		{[]string{ok, "--secret", "hush"}, "--secret: number 1: secret: want whsec_ and the Base64 of 24 to 64 bytes; a key for Authorization belongs to --hmac-key"},
	} {
		got := messagehub(t, "", append([]string{"certify"}, tc.args...)...)
		require.Equal(t, result{2, "", "messagehub: " + tc.want + "\nmessagehub: see messagehub certify --help\n"}, got, tc.args)
		require.NotContains(t, got.err, "hush")
	}
	require.Contains(t, messagehub(t, "", "certify", "/hook").err, "messagehub: URL: want ")
}

func TestCertify_PassesMessagehubListen(t *testing.T) {
	url, stop := startListen(t, nil, "--secret", webhookSecret, "--hmac-key", "hush")
	args := []string{"certify", url + "hook?token=hush", "--insecure-http", "--allow", "127.0.0.0/8", "--slow", "10ms"}
	keys := []string{"--secret", webhookSecret, "--hmac-key", "hush"}
	got := messagehub(t, "", append(args, keys...)...)
	require.Equal(t, 0, got.status, got)
	require.Contains(t, got.out, "21 ok, 0 failed (0 of them a must), 2 not checked\n")
	require.True(t, strings.HasPrefix(got.out, url+"hook\n"))
	require.NotContains(t, got.out+got.err, "hush")

	got = messagehub(t, "", append(args, "--json", "--secret", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")...)
	require.Equal(t, 1, got.status, "another secret")
	require.Empty(t, got.err)
	var all struct{ Results []certify.Result }
	require.NoError(t, json.Unmarshal([]byte(got.out), &all))
	require.Len(t, all.Results, 23)
	require.Equal(t, certify.Failed, all.Results[0].Outcome)
	stop()
}

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // secret from an example in the Standard Webhooks specification

func TestListen_RefusesAWrongCommandLine(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty")
	require.NoError(t, os.WriteFile(empty, []byte("# none\n\n"), 0o600))
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--port", "99999"}, "--port: want a number from 0 to 65535, got 99999"},
		{[]string{"--answer", "99"}, "--answer: want a status from 200 to 599, got 99"},
		{[]string{"--delay", "2h"}, "--delay: want a time such as 20s, up to 1h"},
		{[]string{"--retry-after", "-1s"}, "--retry-after: want a time such as 30s"},
		{[]string{"--failures", "-1"}, "--failures: want a number of calls, or 0"},
		{[]string{"--failures", "1"}, "--failures: these calls would get a success; add --answer with a status such as 503"},
		{[]string{"--answer", "204", "--retry-after", "2s"}, "--retry-after: a success has no Retry-After; add --answer with a status such as 503"},
		{[]string{"--body", "-1"}, "--body: want a number of bytes, or 0"},
		{[]string{"--host", "0.0.0.0"}, "--host 0.0.0.0: every machine that reaches it could print here; use 127.0.0.1:9000, or give a --secret or a --consumer-token, or --insecure"},
		{[]string{"--hmac-key="}, "--hmac-key: want a key, got nothing"},
		{[]string{"--secret", "hush"}, "--secret: number 1: secret: want whsec_ and the Base64 of 24 to 64 bytes; a key for Authorization belongs to --hmac-key"},
		{[]string{"--secret-file", empty}, "--secret-file: " + empty + " has no secret"},
	} {
		got := messagehub(t, "", append([]string{"listen"}, tc.args...)...)
		require.Equal(t, result{2, "", "messagehub: " + tc.want + "\nmessagehub: see messagehub listen --help\n"}, got)
		require.NotContains(t, got.err, "hush")
	}
}

// startListen runs messagehub listen until stop is called. stop returns the
// output.
func startListen(t *testing.T, environ []string, args ...string) (url string, stop func() (out, err string)) {
	t.Helper()
	var out bytes.Buffer
	url, end := listenOn(t, &out, environ, args...)
	return url, func() (string, string) {
		err := end()
		return out.String(), err
	}
}

// startListenTo is startListen, but sends each printed line to the channel
// lines. stop returns the text printed to standard error.
func startListenTo(t *testing.T, lines chan<- []byte, args ...string) (url string, stop func() string) {
	t.Helper()
	return listenOn(t, lineWriter(lines), nil, args...)
}

// A lineWriter sends each text written to it to a channel.
type lineWriter chan<- []byte

func (w lineWriter) Write(p []byte) (int, error) {
	w <- bytes.Clone(p)
	return len(p), nil
}

func listenOn(t *testing.T, out io.Writer, environ []string, args ...string) (url string, stop func() string) {
	t.Helper()
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, &process{args: append([]string{"messagehub", "listen", "--port", "0"}, args...), environ: environ, out: out, err: write})
		_ = write.Close()
	}()
	greeting := make([]byte, 1000)
	n, err := read.Read(greeting)
	require.NoError(t, err)
	url = regexp.MustCompile(`http://[0-9.:]+/`).FindString(string(greeting[:n]))
	require.NotEmpty(t, url, "%s", greeting[:n])
	return url, func() string {
		cancel()
		rest, err := io.ReadAll(read)
		require.NoError(t, err)
		require.Zero(t, <-ended)
		return string(greeting[:n]) + string(rest)
	}
}

func TestListen_SaysHowItVerifiesAndWhatItHasSeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secrets")
	require.NoError(t, os.WriteFile(file, []byte("# ours\n"+webhookSecret+"\n"), 0o600))
	for _, tc := range []struct {
		environ, args []string
		want          string
	}{
		{nil, nil, "calls are not verified"},
		{nil, []string{"--secret-file", file}, "calls are verified with 1 secret"},
		{[]string{"MESSAGEHUB_WEBHOOK_SECRET=" + webhookSecret + " " + webhookSecret, "MESSAGEHUB_WEBHOOK_HMAC_KEY=hush"}, nil, "calls are verified with 2 secrets and 1 HMAC key"},
		{[]string{"MESSAGEHUB_WEBHOOK_SECRET=" + webhookSecret}, []string{"--hmac-key", "hush", "--host", "127.0.0.1"}, "calls are verified with 1 HMAC key"},
	} {
		_, stop := startListen(t, tc.environ, tc.args...)
		out, err := stop()
		require.Empty(t, out)
		require.Contains(t, err, ", "+tc.want+"; Ctrl-C ends it\n")
		require.True(t, strings.HasSuffix(err, "\n0 calls, 0 verified, 0 refused, 0 repeated\n"), err)
	}
}

func TestListen_SaysThatItsPortIsInUse(t *testing.T) {
	url, stop := startListen(t, nil)
	port := regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(url)[1]
	got := messagehub(t, "", "listen", "--port", port)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "another process has this port; stop that one, or choose another port with --port\n")
	stop()
}

//go:build unix

package main

import (
	"bufio"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmulatorCosmos_AnswersHealthzDespiteIdleConnectionsWithFewDescriptors(t *testing.T) {
	cmd := exec.Command("sh", "-c", `ulimit -n 128; exec "$@"`, "sh", program(t), "emulator", "cosmos", "--listen", "127.0.0.1:0", "--in-memory")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	greeting, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, at, _ := strings.Cut(greeting, "http://")
	at, _, _ = strings.Cut(at, "/")
	for range 200 {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		defer conn.Close()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + at + "/healthz")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}

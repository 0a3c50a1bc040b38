package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/domain/hub"
)

// flipBit changes one bit in every copy of text in a file.
func flipBit(t *testing.T, file, text string) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(content), text, file)
	changed := []byte(text)
	changed[len(changed)-1] ^= 2
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(content, []byte(text), changed), 0o600))
}

// peekAs peeks as an actor. It returns the status, and the type of the problem
// in the response.
func peekAs(t *testing.T, url, actor string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/peek", nil)
	require.NoError(t, err)
	req.Header.Set("X-Actor-Id", actor)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var problem struct{ Type string }
	if resp.StatusCode != http.StatusOK {
		require.NoError(t, json.Unmarshal(body, &problem), "%s", body)
	}
	return resp.StatusCode, problem.Type
}

// flipBitBelow calls flipBit for the only file below folder that contains text.
func flipBitBelow(t *testing.T, folder, text string) {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, name)
		}
		return err
	}))
	require.Len(t, found, 1)
	flipBit(t, found[0], text)
}

func TestDamagedFile_IsReportedByPeekAndByCheck(t *testing.T) {
	data := t.TempDir()
	h := startHub(t, "--data", data)
	var lines strings.Builder
	for i := range 4 {
		lines.WriteString(strings.Replace(event(i+1, fmt.Sprintf(`,"payload":"payload %d"`, i)), actorA, fmt.Sprintf("actor-%d", i), 1))
	}
	require.Equal(t, 0, messagehub(t, lines.String(), "send", "--url", h.url(t), "-").status)
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	flipBit(t, filepath.Join(data, "cosmos", disk.FileName), `"id":"head","partitionKey":"actor-1"`)
	flipBitBelow(t, filepath.Join(data, "content"), "payload 3")

	for _, args := range [][]string{{"check", "--data", data, "--json"}, {"check", "--data", data, "--json", "--repair"}} {
		got := messagehub(t, "", args...)
		require.Equal(t, 1, got.status, got.err)
		var report hub.CheckReport
		require.NoError(t, json.Unmarshal([]byte(got.out), &report))
		require.Len(t, report.Findings, 1)
		require.Equal(t, "actor-1", report.Findings[0].Recipient)
		require.True(t, report.Findings[0].Damage)
		require.Zero(t, report.Repaired)
		require.EqualValues(t, 3, report.Events, "those of the other recipients")
	}

	h = startHub(t, "--data", data)
	url := h.url(t)
	for actor, want := range map[string]int{"actor-0": 200, "actor-1": 500, "actor-2": 200, "actor-3": 500} {
		status, problem := peekAs(t, url, actor)
		require.Equal(t, want, status, actor)
		if want == 500 {
			require.Equal(t, "urn:messagehub:problem:damaged", problem, actor)
		}
	}
	require.Equal(t, 1, messagehub(t, "", "check", "--url", url).status)
	for _, more := range [][]string{nil, {"--actor", "actor-1"}} {
		got := messagehub(t, "", append([]string{"find", "00000000-0000-4000-8000-000000000002", "--url", url}, more...)...)
		require.Contains(t, got.out, "not read: actor-1: ", got.err)
	}
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
}

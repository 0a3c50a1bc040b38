package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/hub"
)

// storedObjects returns the data folder of a stopped hub that recorded two
// objects.
func storedObjects(t *testing.T) string {
	t.Helper()
	data := dataFolder(t)
	h := startHub(t, "--data", data)
	url := h.url(t)
	for _, key := range []string{"a", "b"} {
		report := `{"Records":[{"eventName":"ObjectCreated:Put","eventTime":"2026-03-04T05:06:07Z","s3":{"bucket":{"name":"reports"},"object":{"key":"` + key + `","size":1,"eTag":"1","sequencer":"01"}}}]}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/object-events", strings.NewReader(report))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+operatorToken)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.NoError(t, h.stop(t, syscall.SIGTERM), h.stderrText())
	return data
}

func TestCheck_ReportsDamagedObjects(t *testing.T) {
	data := storedObjects(t)
	sound := messagehub(t, "", "check", "--data", data)
	require.Equal(t, result{0, "check: clean\n  0 recipients, 0 cabinets, 0 drawers, 0 events retained, 0 open bundles\n  2 objects with 2 rows\n", ""}, sound)
	eachFound(t, data, "objects", "SELECT * FROM c WHERE c.key = 'b'", func(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string) {
		var ops azcosmos.PatchOperations
		ops.AppendSet("/events", 7)
		_, err := c.PatchItem(t.Context(), key, id, ops, nil)
		require.NoError(t, err)
	})
	for _, args := range [][]string{{}, {"--repair"}} {
		got := messagehub(t, "", append([]string{"check", "--data", data}, args...)...)
		require.Equal(t, 1, got.status, got.err)
		require.Contains(t, got.out, `  DAMAGE        L5   count-wrong          1 of 1 bucket, such as bucket reports: object "b": the object has 1 rows`)
		require.Contains(t, got.out, "messagehub objects crawl")
		require.NotContains(t, got.out, "messagehub queue")
	}
	h := startHub(t, "--data", data)
	got := messagehub(t, "", "check", "--url", h.url(t), "--json")
	require.Equal(t, 1, got.status, got.err)
	var report hub.CheckReport
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.EqualValues(t, 2, report.Objects)
	require.Len(t, report.Findings, 1)
	require.Equal(t, "reports", report.Findings[0].Bucket)
	require.Equal(t, 0, messagehub(t, events(1, 1), "send", "--url", h.url(t), "-").status)
	require.Equal(t, 0, messagehub(t, "", "check", "--url", h.url(t), "--actor", actorA).status, "a check of an actor is not about objects")
}

func TestCheck_RejectsAnInvalidResumePosition(t *testing.T) {
	data, file := storedObjects(t), filepath.Join(t.TempDir(), "state")
	for _, position := range []string{"objects.!", "objects." + base64.RawURLEncoding.EncodeToString([]byte("none"))} {
		state, err := json.Marshal(&checkState{Of: data, Report: hub.CheckReport{Objects: 1, Resume: position}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, state, 0o600))
		got := messagehub(t, "", "check", "--data", data, "--resume", file)
		require.Equal(t, 1, got.status)
		require.True(t, strings.Contains(got.err, "resume: ") && strings.Contains(got.err, "begin from the start"), got.err)
	}
}

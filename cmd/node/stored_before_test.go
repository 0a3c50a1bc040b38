package node_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// The archive is the data folder of a hub of commit b05bfc0, a version without
// tails and without the identity of a folder. In the archive, the file
// sent.jsonl contains the events that were sent to each of these actors:
//
//	waiting       events 1 to 30, of two origins, in 13 Saves
//	half-fetched  events 101 to 110, which were dequeued, and then 111 to 115
//	open-bundle   events 201 to 220, peeked and not dequeued, and then 221 to 225
const storedBefore, openBundleID = "testdata/stored-b05bfc0.tar.gz", "785d0f7b-e489-4b62-acb7-e8b85d8c368f"

// unpack extracts a tar.gz archive into a folder.
func unpack(t *testing.T, archive, folder string) {
	t.Helper()
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err == io.EOF { //nolint:errorlint // as documented
			return
		}
		require.NoError(t, err)
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if header.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		text, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
}

func TestDataOfAnOlderVersion_IsReadAndContinued(t *testing.T) {
	folder := t.TempDir()
	unpack(t, storedBefore, folder)
	folder = filepath.Join(folder, "stored")
	text, err := os.ReadFile(filepath.Join(folder, "sent.jsonl"))
	require.NoError(t, err)
	sent := strings.Split(strings.TrimSpace(string(text)), "\n")

	cfg := settings(folder)
	cfg.Retention = 0
	for _, name := range []string{"MeteringPoints", "Charges"} {
		origin, err := domain.ParseOrigin(name)
		require.NoError(t, err)
		cfg.Domains = append(cfg.Domains, config.Domain{Name: origin, Content: domain.Inline})
	}
	n, stop := start(t, cfg, node.Options{SweepEvery: -1})

	status, body := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", "["+strings.Join(sent, ",")+"]")
	require.Equal(t, 202, status, body)
	require.JSONEq(t, `{"accepted":0,"duplicates":70}`, body, "all of it is known")
	id, numbers := peekNumbers(t, n, "open-bundle")
	require.Equal(t, openBundleID, id, "the open bundle is still the open one")
	require.Equal(t, numberRange(201, 220), numbers)

	var further []string
	for _, actor := range []string{"waiting", "half-fetched", "open-bundle"} {
		line := sent[slices.IndexFunc(sent, func(line string) bool { return strings.Contains(line, `"`+actor+`"`) })]
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		e["id"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", 900+len(further))
		if e["payload"] != nil {
			e["payload"] = map[string]int{"number": 900 + len(further)}
		}
		again, err := json.Marshal(e)
		require.NoError(t, err)
		further = append(further, string(again))
	}
	for _, want := range []string{`{"accepted":3,"duplicates":0}`, `{"accepted":0,"duplicates":3}`} {
		status, body = call(t, http.MethodPost, n.URL()+"/v1/data-available", "", "["+strings.Join(further, ",")+"]")
		require.Equal(t, 202, status, body)
		require.JSONEq(t, want, body)
	}
	require.Equal(t, append(numberRange(1, 30), 900), sorted(drainNumbers(t, n, "waiting")))
	require.Equal(t, append(numberRange(111, 115), 901), drainNumbers(t, n, "half-fetched"))
	require.Equal(t, append(numberRange(201, 225), 902), drainNumbers(t, n, "open-bundle"))
	require.NoError(t, stop())

	report, err := node.Check(t.Context(), cfg, hub.CheckOptions{Repair: true}, nil)
	require.NoError(t, err)
	require.True(t, report.Clean(), "%v", report.Findings)
}

// peekNumbers peeks as an actor. It returns the bundle's id and the numbers of
// its events, or "" if no data is available.
func peekNumbers(t *testing.T, n *node.Node, actor string) (id string, numbers []int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/v1/peek", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Actor-Id", actor)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return "", nil
	}
	require.Equal(t, 200, resp.StatusCode)
	var entries []struct {
		Number int    // Number is set only in payloads
		ID     string // ID is set only in manifests
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&entries))
	for _, e := range entries {
		if e.ID != "" {
			e.Number, err = strconv.Atoi(e.ID[len(e.ID)-12:])
			require.NoError(t, err)
		}
		numbers = append(numbers, e.Number)
	}
	return resp.Header.Get("MessageId"), numbers
}

// drainNumbers peeks and dequeues until the actor has no data. It returns the
// numbers of the events.
func drainNumbers(t *testing.T, n *node.Node, actor string) (numbers []int) {
	t.Helper()
	for {
		id, some := peekNumbers(t, n, actor)
		if id == "" {
			return numbers
		}
		numbers = append(numbers, some...)
		status, body := call(t, http.MethodDelete, n.URL()+"/v1/dequeue/"+id, actor, "")
		require.Equal(t, 200, status, body)
	}
}

// numberRange returns the numbers from first to last, inclusive.
func numberRange(first, last int) (all []int) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

func sorted(numbers []int) []int {
	slices.Sort(numbers)
	return numbers
}

package node_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// get sends a GET as actor "a". headers alternates names and values.
func get(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("X-Actor-Id", "a")
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// A node stops during a download, and is restarted. The client must be able to
// resume the download. The node uses the durable engine and stores payloads in
// files.
func TestADownloadContinuesAfterARestart(t *testing.T) {
	dir := t.TempDir()
	n, stop := start(t, settings(dir), node.Options{})
	var events []string
	for i := range 300 {
		events = append(events, fmt.Sprintf(`{"id":"00000000-0000-4000-8000-%012d","recipient":"a","origin":"Charges","contentType":"c",`+
			`"documentType":"d","supportsBundling":true,"weight":10,"payload":%q}`, i+1, strings.Repeat("x", 30*i)))
	}
	status, answer := call(t, http.MethodPost, n.URL()+"/v1/data-available", "", "["+strings.Join(events, ",")+"]")
	require.Equal(t, 202, status, answer)
	first, whole := get(t, n.URL()+"/v1/peek")
	require.Equal(t, 200, first.StatusCode)
	require.Equal(t, 300, strings.Count(whole, `"sequence":`))
	require.NoError(t, stop())

	n, stop = start(t, settings(dir), node.Options{})
	tag, half := first.Header.Get("ETag"), len(whole)/2
	rest, text := get(t, n.URL()+"/v1/bundles/"+first.Header.Get("MessageId"), "Range", fmt.Sprintf("bytes=%d-", half), "If-Range", tag)
	require.Equal(t, http.StatusPartialContent, rest.StatusCode)
	require.Equal(t, whole[half:], text)
	again, text := get(t, n.URL()+"/API/Peek/MasterData?ResponseFormat=JSON")
	require.Equal(t, 200, again.StatusCode)
	require.Equal(t, whole, text)
	require.Equal(t, tag, again.Header.Get("ETag"))
	status, _ = call(t, http.MethodDelete, n.URL()+"/Api/Dequeue?BundleId="+first.Header.Get("MessageId"), "a", "")
	require.Equal(t, 200, status)
	gone, _ := get(t, n.URL()+"/v1/bundles/"+first.Header.Get("MessageId"))
	require.Equal(t, 404, gone.StatusCode)
	require.NoError(t, stop())
}

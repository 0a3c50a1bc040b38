package node_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// A newerHeads is a transport that sets the format of every head in a response
// to one that no version supports.
type newerHeads struct {
	next  policy.Transporter
	isOn  atomic.Bool
	wrote atomic.Int64 // number of writes to the mailbox while newerHeads was active
}

func (h *newerHeads) Do(req *http.Request) (*http.Response, error) {
	isRead := req.Method == http.MethodGet || req.Header.Get("x-ms-documentdb-query") != ""
	// The node's sweep and survey write only documents of other partitions.
	isOfMailbox := strings.Contains(req.Header.Get("x-ms-documentdb-partitionkey"), "newer")
	if h.isOn.Load() && !isRead && isOfMailbox {
		h.wrote.Add(1)
	}
	resp, err := h.next.Do(req)
	if err != nil || !h.isOn.Load() || req.Method != http.MethodGet || !strings.HasSuffix(req.URL.Path, "/docs/head") || resp.StatusCode != 200 {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	body = append(bytes.TrimSuffix(body, []byte("}")), `,"v":1000}`...)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, err
}

func TestAMailboxOfANewerFormat_IsRefusedAndTheNodeStaysReady(t *testing.T) {
	var heads newerHeads
	n, _ := start(t, settings(""), node.Options{WrapTransport: func(next policy.Transporter) policy.Transporter {
		heads.next = next
		return &heads
	}})
	const event = `[{"id":"%s","recipient":"newer","origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1}]`
	send := func(id string) (int, string) {
		return call(t, http.MethodPost, n.URL()+"/v1/data-available", "", strings.Replace(event, "%s", id, 1))
	}
	status, body := send("6f1c2c34-6b1a-4d8e-9f5e-2b8f1f6d7a01")
	require.Equal(t, 202, status, body)

	heads.isOn.Store(true)
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "newer", "")
	require.Equal(t, 503, status, body)
	require.Contains(t, body, "problem:newer-format")
	require.NotContains(t, body, "partition")
	require.Zero(t, heads.wrote.Load())

	status, body = call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, 200, status, "one such mailbox must not take all older nodes out of service")
	require.Contains(t, body, `"warnings":[{"name":"newer-format","reason":"a newer version has stored 1 mailboxes`)
	_, body = call(t, http.MethodGet, n.URL()+"/metrics", "", "")
	require.Contains(t, body, "messagehub_newer_format_mailboxes 1")

	heads.isOn.Store(false)
	status, body = call(t, http.MethodGet, n.URL()+"/v1/peek", "newer", "")
	require.Equal(t, 200, status, body)
	_, body = call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.NotContains(t, body, "warnings")
}

package node_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// A countedStore counts the store requests, and refuses them while isDown is
// true.
type countedStore struct {
	next   policy.Transporter
	n      atomic.Int64
	isDown atomic.Bool
}

func (c *countedStore) Do(req *http.Request) (*http.Response, error) {
	c.n.Add(1)
	if c.isDown.Load() {
		return nil, errors.New("no route to the account")
	}
	return c.next.Do(req)
}

func TestReadyz_CostsNoRequestToTheStore(t *testing.T) {
	var store countedStore
	n, _ := start(t, settings(""), node.Options{ReadinessInterval: time.Hour, WrapTransport: func(next policy.Transporter) policy.Transporter {
		store.next = next
		return &store
	}})
	before := store.n.Load()
	for range 100 {
		for _, path := range []string{"/readyz", "/api/monitor/ready"} {
			status, body := call(t, http.MethodGet, n.URL()+path, "", "")
			require.Equal(t, 200, status, body)
		}
	}
	require.Less(t, store.n.Load()-before, int64(120), "200 calls, and whatever the hub does on its own, such as to list the cursors of 64 shards")
}

func TestReadyz_NamesTheStoreThatDoesNotAnswer(t *testing.T) {
	var store countedStore
	n, _ := start(t, settings(""), node.Options{ReadinessInterval: 10 * time.Millisecond, WrapTransport: func(next policy.Transporter) policy.Transporter {
		store.next = next
		return &store
	}})
	status, _ := call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, 200, status, "the first answer of a node is right")

	store.isDown.Store(true)
	var body string
	require.Eventually(t, func() bool {
		status, body = call(t, http.MethodGet, n.URL()+"/readyz", "", "")
		// While a check's retries take more than five seconds, /readyz reports
		// that the check has not finished.
		return status == 503 && !strings.Contains(body, "has not finished")
	}, 30*time.Second, time.Millisecond)
	require.Contains(t, body, `"checks":[{"name":"store","reason":"the store does not answer","remedy":"`)
	require.NotContains(t, body, "no route")

	store.isDown.Store(false)
	require.Eventually(t, func() bool {
		status, _ = call(t, http.MethodGet, n.URL()+"/api/monitor/ready", "", "")
		return status == 200
	}, 30*time.Second, time.Millisecond)
}

func TestReadyz_NamesTheFullDisk(t *testing.T) {
	cfg := settings(t.TempDir())
	cfg.Limits.FreeDisk = 1 << 62
	n, _ := start(t, cfg, node.Options{})
	status, body := call(t, http.MethodGet, n.URL()+"/readyz", "", "")
	require.Equal(t, 503, status)
	require.Contains(t, body, `"name":"disk"`)
	require.Contains(t, body, "free space on it, or lower that setting")
}

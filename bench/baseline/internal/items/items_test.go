package items_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
)

// A scriptedAccount responds to requests with these statuses in order, and repeats the last one. A
// response with 429 requests a wait of 20 s.
type scriptedAccount struct {
	statuses []int
	received int
}

func (a *scriptedAccount) Do(req *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Request: req}
	body := `{}`
	if strings.Contains(req.URL.Path, "/docs") {
		answer.StatusCode = a.statuses[min(a.received, len(a.statuses)-1)]
		a.received++
		body = `{"id":"x"}`
	}
	if answer.StatusCode == http.StatusTooManyRequests {
		answer.Header.Set("x-ms-retry-after-ms", "20000")
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

func open(t *testing.T, a *scriptedAccount) items.Container {
	t.Helper()
	key, err := azcosmos.NewKeyCredential("a2V5")
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey("https://localhost", key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: a,
		Retry:     policy.RetryOptions{MaxRetries: -1, ShouldRetry: func(*http.Response, error) bool { return false }},
	}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	c, err := items.Open(client, "db", "container")
	require.NoError(t, err)
	return c
}

func TestThrottledRequest_IsRetriedAfterTheRequestedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scriptedAccount{statuses: []int{429, 429, 201}}
		began := time.Now()
		require.NoError(t, open(t, a).Create(t.Context(), "p", map[string]string{"id": "x"}))
		require.Equal(t, 3, a.received)
		require.Equal(t, 40*time.Second, time.Since(began))
	})
}

func TestRetry_EndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scriptedAccount{statuses: []int{429}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		_, err := items.All[map[string]string](ctx, open(t, a), "p", items.Query{Text: "SELECT * FROM c"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, domain.Busy, domain.KindOf(err))
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, 2, a.received)
	})
}

func TestOtherErrors_AreNotRetried(t *testing.T) {
	for status, kind := range map[int]domain.Kind{
		http.StatusConflict:            domain.Unknown,
		http.StatusPreconditionFailed:  domain.Unknown,
		http.StatusRequestTimeout:      domain.Uncertain,
		http.StatusServiceUnavailable:  domain.Uncertain,
		http.StatusInternalServerError: domain.Uncertain,
	} {
		a := &scriptedAccount{statuses: []int{status, 201}}
		err := open(t, a).Upsert(t.Context(), "p", map[string]string{"id": "x"})
		require.Equal(t, status, items.Status(err))
		require.Equal(t, kind, domain.KindOf(err), "kind of status %d", status)
		require.Equal(t, 1, a.received, "requests that got %d", status)
	}
}

func TestMissingItem_IsNoError(t *testing.T) {
	c := open(t, &scriptedAccount{statuses: []int{http.StatusNotFound}})
	into := "unchanged"
	found, err := c.Read(t.Context(), "p", "x", &into)
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, "unchanged", into)
	require.NoError(t, c.Delete(t.Context(), "p", "x"))
}

package content_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A refusingTransport refuses selected requests with 403.
type refusingTransport struct {
	next    policy.Transporter
	refuses func(*http.Request) bool
}

func (g refusingTransport) Do(req *http.Request) (*http.Response, error) {
	if g.refuses(req) {
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
	return g.next.Do(req)
}

// openProbedAccount returns the options for a container of a new account, whose clock returns now.
func openProbedAccount(t *testing.T, now *time.Time) content.BlobOptions {
	account, err := embedded.Open(embedded.Options{Containers: []string{"content"}, Clock: func() time.Time { return *now }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	o := inProcess(account)
	o.Container = "content"
	return o
}

// blobRefusals has, for each right, a function that selects the requests that need the right.
var blobRefusals = map[string]func(*http.Request) bool{
	content.RightWrite:  func(r *http.Request) bool { return r.Method == http.MethodPut },
	content.RightRead:   func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Query().Get("comp") != "list" },
	content.RightList:   func(r *http.Request) bool { return r.URL.Query().Get("comp") == "list" },
	content.RightDelete: func(r *http.Request) bool { return r.Method == http.MethodDelete },
}

func TestProbeBlobs_FindsEachRightThatIsMissing(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for missing, refuses := range blobRefusals {
		o := openProbedAccount(t, &now)
		o.Transport = refusingTransport{o.Transport, refuses}
		rights, _, err := content.ProbeBlobs(t.Context(), o, "one")
		require.NoError(t, err)
		require.Len(t, rights, len(blobRefusals))
		for _, right := range rights {
			require.Equal(t, right.Name == missing, right.IsDenied, "%s without %s: %v", right.Name, missing, right.Err)
			require.Equal(t, right.Name == missing, right.Err != nil, "%s without %s: %v", right.Name, missing, right.Err)
		}
	}
}

func TestProbeBlobs_DeletesTheBlobOfADeadRun(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	o := openProbedAccount(t, &now)
	ctx, die := context.WithCancel(t.Context())
	dying := o
	dying.Transport = refusingTransport{o.Transport, func(r *http.Request) bool {
		if r.Method == http.MethodGet {
			die()
		}
		return false
	}}
	_, _, err := content.ProbeBlobs(ctx, dying, "dead")
	require.NoError(t, err)

	_, removed, err := content.ProbeBlobs(t.Context(), o, "two")
	require.NoError(t, err)
	require.Zero(t, removed, "the dead run may still be in progress")
	now = now.Add(time.Minute)
	for _, want := range []int{1, 0} {
		rights, removed, err := content.ProbeBlobs(t.Context(), o, "three")
		require.NoError(t, err)
		require.Equal(t, want, removed)
		for _, right := range rights {
			require.NoError(t, right.Err)
		}
	}
}

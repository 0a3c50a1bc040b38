package probe_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/probe"
)

var all = []string{probe.Query, probe.Create, probe.Read, probe.Replace, probe.Upsert, probe.ChangeFeed, probe.Delete}

// A rig is an account with a clock, in which a test can refuse requests.
type rig struct {
	*accounttest.Account
	t   *testing.T
	now time.Time
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	r.Account = accounttest.New(t, embedded.Options{Clock: func() time.Time { return r.now }},
		[]client.ContainerSpec{{Name: "catalog", PartitionKey: "/partitionKey"}, {Name: "bundles", PartitionKey: "/recipient"}})
	return r
}

// A gate refuses selected requests with 403.
type gate struct {
	next    policy.Transporter
	refuses func(*http.Request) bool
}

func (g gate) Do(req *http.Request) (*http.Response, error) {
	if g.refuses != nil && strings.Contains(req.URL.Path, "/docs") && g.refuses(req) {
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
	return g.next.Do(req)
}

func (r *rig) probe(refuses func(*http.Request) bool) *probe.Probe {
	r.t.Helper()
	p, err := probe.New(r.ConnectBy(gate{r.Transport, refuses}), probe.Options{})
	require.NoError(r.t, err)
	return p
}

// count returns the number of documents of the package.
func (r *rig) count() int {
	r.t.Helper()
	db := r.Connect()
	catalog, err := db.Container("catalog")
	require.NoError(r.t, err)
	q := client.New(db, client.Options{}).Begin("test").Query(catalog, "|probe", "SELECT c.id FROM c")
	found, err := client.All[map[string]any](r.t.Context(), q)
	require.NoError(r.t, err)
	return len(found)
}

func TestRun_ReportsAllRightsAndRemovesItsDocuments(t *testing.T) {
	r := newRig(t)
	for range 2 {
		result := r.probe(nil).Run(t.Context(), all...)
		require.Len(t, result.Rights, len(all))
		for _, right := range result.Rights {
			require.NoError(t, right.Err, right.Name)
		}
		require.False(t, result.Left)
		require.Zero(t, r.count())
	}
}

// refusals select the requests that need a right.
var refusals = map[string]func(*http.Request) bool{
	probe.Query:  func(r *http.Request) bool { return strings.Contains(r.Header.Get("Content-Type"), "query") },
	probe.Create: func(r *http.Request) bool { return isCreation(r) && r.Header.Get("x-ms-cosmos-is-batch-request") == "" },
	probe.Read: func(r *http.Request) bool {
		return r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/docs")
	},
	probe.Replace: func(r *http.Request) bool { return r.Method == http.MethodPut },
	probe.Upsert:  func(r *http.Request) bool { return r.Header.Get("x-ms-cosmos-is-batch-request") != "" },
	probe.Delete:  func(r *http.Request) bool { return r.Method == http.MethodDelete },
	probe.ChangeFeed: func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/docs")
	},
}

func isCreation(r *http.Request) bool {
	return r.Method == http.MethodPost && !strings.Contains(r.Header.Get("Content-Type"), "query")
}

func TestRun_FindsEachRightThatIsMissing(t *testing.T) {
	for missing, refuses := range refusals {
		t.Run(strings.ReplaceAll(missing, "/", "-"), func(t *testing.T) {
			r := newRig(t)
			result := r.probe(refuses).Run(t.Context(), all...)
			for _, right := range result.Rights {
				require.Equal(t, right.Name == missing, probe.IsDenied(right.Err), "%s: %v", right.Name, right.Err)
				require.Equal(t, right.Name == missing, right.Err != nil, "%s: %v", right.Name, right.Err)
			}
			require.Equal(t, missing == probe.Delete, result.Left)
			require.Equal(t, result.Left, r.count() == 1)
		})
	}
}

func TestRun_FindsAllRightsThatAreMissing(t *testing.T) {
	r := newRig(t)
	for _, right := range r.probe(func(*http.Request) bool { return true }).Run(t.Context(), all...).Rights {
		require.True(t, probe.IsDenied(right.Err), right.Name)
	}
}

func TestRun_RemovesWhatADeadRunHasLeft(t *testing.T) {
	r := newRig(t)
	ctx, die := context.WithCancel(t.Context())
	result := r.probe(func(req *http.Request) bool {
		if req.Method == http.MethodPut {
			die()
		}
		return false
	}).Run(ctx, all...)
	require.True(t, result.Left)
	require.Equal(t, 1, r.count())

	result = r.probe(nil).Run(t.Context(), all...)
	require.Zero(t, result.Removed, "that run may not have ended")
	require.Equal(t, 1, r.count())
	r.now = r.now.Add(time.Minute)
	result = r.probe(nil).Run(t.Context(), all...)
	require.Equal(t, 1, result.Removed)
	require.Zero(t, r.count())
}

func TestRun_DistinguishesAFaultFromARefusal(t *testing.T) {
	r := newRig(t)
	db := r.ConnectBy(failing{})
	p, err := probe.New(db, probe.Options{})
	require.NoError(t, err)
	for _, right := range p.Run(t.Context(), all...).Rights {
		require.Error(t, right.Err, right.Name)
		require.False(t, probe.IsDenied(right.Err))
	}
}

type failing struct{}

func (failing) Do(*http.Request) (*http.Response, error) { return nil, errors.New("no route") }

package account_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openAccount(t *testing.T, o account.Options) *account.Account {
	t.Helper()
	a, err := account.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// openHub provisions the hub's containers and returns a hub's repository over l.
func openHub(t *testing.T, a *account.Account, l *account.Line) *cosmos.Repository {
	t.Helper()
	db, err := client.Connect(a.Connection(l, "hub"))
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, db.Provision(t.Context(), cosmos.Containers()))
	return cosmos.New(db, memory.NewContent(), cosmos.Options{Exclusive: true})
}

func TestLine_CountsRequests(t *testing.T) {
	a := openAccount(t, account.Options{})
	metered, other := a.Line(), a.Line()
	h := openHub(t, a, metered)
	actor := repositorytest.NewActor()
	_, err := h.Save(t.Context(), actor, repositorytest.Events(1, actor))
	require.NoError(t, err)
	before := metered.Count()
	_, err = h.Save(t.Context(), actor, repositorytest.Events(125, actor))
	require.NoError(t, err)
	cost := metered.Count().Since(before)
	require.EqualValues(t, 4, cost.Requests, "reserve, pages, count and commit")
	require.InDelta(t, 38, cost.Units, 4)
	require.Positive(t, cost.Sent)
	require.Positive(t, cost.Received)
	require.Zero(t, other.Count(), "another line counts for itself")
}

func TestUnmeteredLine_BypassesThePhysics(t *testing.T) {
	physics := &account.Physics{}
	physics.Latency.Base = 200 * time.Millisecond
	a := openAccount(t, account.Options{Physics: physics})
	began := time.Now()
	h := openHub(t, a, a.Unmetered())
	actor := repositorytest.NewActor()
	for range 20 { // each Save costs 38 RU, and the container has 400 RU per second
		_, err := h.Save(t.Context(), actor, repositorytest.Events(125, actor))
		require.NoError(t, err)
	}
	require.Less(t, time.Since(began), 80*200*time.Millisecond, "eighty requests that did not wait")

	began = time.Now()
	_, err := openHub(t, a, a.Line()).Watermark(t.Context(), actor)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
}

func TestThroughput_DeterminesTheNumberOfPartitions(t *testing.T) {
	a := openAccount(t, account.Options{Physics: account.DefaultPhysics(1)})
	openHub(t, a, a.Unmetered())
	require.NoError(t, a.Raise(t.Context(), "hub", map[string]int32{"cabinet": 60_000, "catalog": 10_000, "bundles": 10_000}))
	line := a.Line()
	actor := repositorytest.NewActor()
	_, err := openHub(t, a, line).Save(t.Context(), actor, repositorytest.Events(10_000, actor))
	require.NoError(t, err)
	require.Zero(t, line.Count().Refused, "10,000 events of one drawer are far below what a partition gives in a second")
	require.NoError(t, a.Drop(t.Context(), "hub"))
	require.NoError(t, a.Drop(t.Context(), "hub"), "what is not there is no error")
}

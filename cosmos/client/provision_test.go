package client

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

func TestProvision_CreatesTheContainersOfTheAdapter(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	db, err := Connect(Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	require.NoError(t, err)
	defer db.Close()
	shop := New(db, Options{Containers: []ContainerSpec{
		{Name: "orders", PartitionKey: "/shop", Index: []IndexPath{{Path: "/state/?", Use: "a list reads all orders"}}},
		{Name: "visits", PartitionKey: "/shop", Expires: true},
	}})

	all, err := shop.Provision(t.Context(), ProvisionOptions{CheckOnly: true})
	require.NoError(t, err)
	require.Len(t, all, 3, "the database and two containers")
	require.ErrorContains(t, Unfinished(all), "container visits does not exist")
	require.ErrorContains(t, shop.CheckContainers(t.Context()), "container orders")

	all, err = shop.Provision(t.Context(), ProvisionOptions{Repair: true})
	require.NoError(t, err)
	require.NoError(t, Unfinished(all))
	for _, p := range all {
		require.Equal(t, StateCreated, p.State, p.Name)
	}
	require.NoError(t, shop.CheckContainers(t.Context()))

	other := New(db, Options{Containers: []ContainerSpec{{Name: "orders", PartitionKey: "/buyer", Remedy: "ask the shop"}}})
	require.ErrorContains(t, other.CheckContainers(t.Context()), "ask the shop")
}

func TestProvision_RetriesThrottledReads(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	throttled := false
	transport := doerFunc(func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/colls/orders") && !throttled {
			throttled = true
			return faulty.Throttled.Do(engine.Transport(), req)
		}
		return engine.Transport().Do(req)
	})
	db, err := Connect(Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: transport})
	require.NoError(t, err)
	defer db.Close()
	shop := New(db, Options{Containers: []ContainerSpec{{Name: "orders", PartitionKey: "/shop"}}, Retries: 1})
	all, err := shop.Provision(t.Context(), ProvisionOptions{})
	require.NoError(t, err)
	require.NoError(t, Unfinished(all))
	require.True(t, throttled)
}

type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) Do(req *http.Request) (*http.Response, error) { return f(req) }

package cosmos

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// withoutKey returns containers as an older version of the hub created them, without an index on the
// partition key.
func withoutKey() byHand {
	containers := newByHand()
	for _, spec := range Containers() {
		policy := containers[spec.Name].IndexingPolicy
		policy.IncludedPaths = slices.DeleteFunc(policy.IncludedPaths, func(p azcosmos.IncludedPath) bool { return p.Path == spec.PartitionKey+"/?" })
	}
	return containers
}

func TestContainers_IndexTheirPartitionKeys(t *testing.T) {
	for _, spec := range Containers() {
		require.Equal(t, spec.PartitionKey+"/?", spec.IndexPaths()[0], spec.Name)
		require.Contains(t, spec.IndexingPolicy(), spec.PartitionKey+"/?", spec.Name)
	}
}

func TestProvision_AddsThePartitionKeyToTheIndexOfAnEarlierVersion(t *testing.T) {
	a := newAccount(t, withoutKey())
	var log strings.Builder
	node := a.node(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, node.CheckContainers(t.Context()), "a store of an earlier version is served")
	for _, spec := range Containers() {
		require.Contains(t, log.String(), "does not index the partition key, "+spec.PartitionKey+"/?")
	}
	require.Contains(t, log.String(), "messagehub provision adds it")

	all, err := node.Provision(t.Context(), client.ProvisionOptions{CheckOnly: true, Repair: true})
	require.NoError(t, err)
	require.NoError(t, client.Unfinished(all))
	for _, p := range all[1:] {
		require.Contains(t, strings.Join(p.Notes, "\n"), "does not index the partition key")
	}
	all, err = node.Provision(t.Context(), client.ProvisionOptions{Repair: true})
	require.NoError(t, err)
	for _, p := range all[1:] {
		require.Equal(t, client.StateUpdated, p.State)
		require.Equal(t, []string{"index on " + p.Spec.PartitionKey + "/?"}, p.Changes)
	}
	log.Reset()
	require.NoError(t, node.CheckContainers(t.Context()))
	require.Empty(t, log.String())
}

// unitsOfMailboxes returns the request units of all calls for a few mailboxes, from the first Save to the
// last sweep.
func unitsOfMailboxes(t *testing.T, containers byHand, strict bool) float64 {
	t.Helper()
	engine, err := embedded.Open(embedded.Options{StrictIndex: strict, Pessimistic: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	a := &account{t: t, engine: engine, line: engine.Transport()}
	_, err = a.client().CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: databaseName}, nil)
	require.NoError(t, err)
	for _, properties := range containers {
		a.create(properties)
	}
	registry := prometheus.NewRegistry()
	node := a.node(Options{Registerer: registry, DrawerCapacity: 2})
	for i := range 8 {
		recipient, err := domain.ParseActorID(fmt.Sprintf("actor-%d", i))
		require.NoError(t, err)
		for range 3 {
			event := repositorytest.Event(recipient)
			_, err := node.Save(t.Context(), recipient, []domain.Event{event})
			require.NoError(t, err)
		}
		_, err = repositorytest.Peek(t.Context(), repositorytest.Stores{Events: node, Bundles: node, Content: memory.NewContent()}, recipient, allGroups, domain.BundleID{})
		require.NoError(t, err)
	}
	return sumRequestUnits(t, registry)
}

func TestQueries_CostNoScanWithAStrictIndex(t *testing.T) {
	plain := unitsOfMailboxes(t, newByHand(), false)
	require.InDelta(t, plain, unitsOfMailboxes(t, newByHand(), true), plain*0.001, "every query is confined by an index")
	require.Greater(t, unitsOfMailboxes(t, withoutKey(), true), 1.2*plain, "the budget sees an index that is missing")
}

func TestReadGates_IsOneRequestWith100Groups(t *testing.T) {
	const groups = 100
	all := domain.DefaultGroups()
	recipient := repositorytest.NewActor()
	var events []domain.Event
	for i := range groups {
		origin, err := domain.ParseOrigin(fmt.Sprintf("Origin%d", i))
		require.NoError(t, err)
		group, err := domain.ParseGroup(fmt.Sprintf("group%d", i))
		require.NoError(t, err)
		all = all.With(origin, group)
		event := repositorytest.Event(recipient)
		event.Origin = origin
		events = append(events, event)
	}
	registry := prometheus.NewRegistry()
	node := newAccount(t, newByHand()).node(Options{Groups: all, Registerer: registry})
	_, err := node.Save(t.Context(), recipient, events)
	require.NoError(t, err)
	c := node.beginCall("test")
	found := make(map[domain.Group]*gate)
	before := sumRequestUnits(t, registry)
	require.NoError(t, c.readGates(t.Context(), recipient, all.All(), found))
	require.Len(t, found, len(all.All()))
	require.LessOrEqual(t, sumRequestUnits(t, registry)-before, 3.0, "no gate exists")
	_, err = repositorytest.Peek(t.Context(), repositorytest.Stores{Events: node, Bundles: node, Content: memory.NewContent()}, recipient, all.All(), domain.BundleID{})
	require.NoError(t, err)
	before = sumRequestUnits(t, registry)
	require.NoError(t, c.readGates(t.Context(), recipient, all.All(), found))
	require.LessOrEqual(t, sumRequestUnits(t, registry)-before, 3.0, "one gate exists")
}

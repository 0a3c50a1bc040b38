package client_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
)

// connectAccount connects to a new account, and lets azcosmos read the properties of the account.
func connectAccount(t *testing.T, o embedded.Options, consistency string) (*client.Database, error) {
	t.Helper()
	engine, err := embedded.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	db, err := client.Connect(client.Connection{
		Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport(), Consistency: consistency,
	})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	specs := []client.ContainerSpec{{Name: "x", PartitionKey: "/key", KeyBytes: 10}}
	return db, db.Provision(t.Context(), specs)
}

func TestReads_AreFreshOnlyWhereTheAccountWrites(t *testing.T) {
	const here, there = "West Europe", "North Europe"
	for _, tc := range []struct {
		account, override string
		write, read       []string
		stale             bool
	}{
		{account: "Strong"},
		{account: "BoundedStaleness"},
		{account: "Session", stale: true},
		{account: "ConsistentPrefix", stale: true},
		{account: "Eventual", stale: true},
		{account: "BoundedStaleness", write: []string{here}, read: []string{here}},
		{account: "BoundedStaleness", write: []string{here}, read: []string{here, there}},
		{account: "BoundedStaleness", write: []string{here}, read: []string{there, here}, stale: true},
		{account: "Session", override: "BoundedStaleness", write: []string{here}, read: []string{there, here}, stale: true},
		{account: "Session", override: "BoundedStaleness"},
		{account: "BoundedStaleness", override: "Session", stale: true},
		{account: "Strong", write: []string{here}, read: []string{there, here}}, // strong consistency: reads are current in every region
	} {
		db, err := connectAccount(t, embedded.Options{Consistency: tc.account, WriteRegions: tc.write, ReadRegions: tc.read}, tc.override)
		require.NoError(t, err)
		assert.Equal(t, tc.stale, db.ReadsMayBeStale(), "%+v", tc)
	}
}

func TestReadsOfAnUnknownAccount_AreTakenForStale(t *testing.T) {
	for _, override := range []string{"", "BoundedStaleness"} {
		db, err := client.Connect(client.Connection{Endpoint: "http://account.invalid", Key: embedded.WellKnownKey, Consistency: override})
		require.NoError(t, err)
		defer db.Close()
		assert.True(t, db.ReadsMayBeStale(), "%q", override)
	}
}

func TestAccountWithSeveralWriteRegions_IsRefusedByName(t *testing.T) {
	for _, consistency := range []string{"", "Strong"} {
		db, err := connectAccount(t, embedded.Options{Consistency: "Session", WriteRegions: []string{"West Europe", "North Europe"}}, consistency)
		require.ErrorContains(t, err, "West Europe, North Europe", "provisioning")

		c := client.New(db, client.Options{Containers: []client.ContainerSpec{{Name: "x", PartitionKey: "/key", KeyBytes: 10}}})
		for what, err := range map[string]error{
			"the check before a node serves": c.CheckContainers(t.Context()),
			"the check while it serves":      c.ContainersFault(t.Context()),
			"a request":                      read(t, c, db),
		} {
			require.ErrorContains(t, err, "several regions", what)
			require.ErrorContains(t, err, "West Europe, North Europe", what)
			require.Equal(t, domain.Unavailable, domain.KindOf(client.Classify("read", err)), what)
		}
	}
}

// read reads a document that does not exist, and returns the error.
func read(t *testing.T, c *client.Client, db *client.Database) error {
	t.Helper()
	container, err := db.Container("x")
	require.NoError(t, err)
	var doc struct{}
	_, err = c.Begin("read").Read(t.Context(), container, "key", "id", &doc)
	return err
}

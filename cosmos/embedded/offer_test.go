package embedded_test

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestThroughput_IsStoredWithinTheLimitsOfCosmos(t *testing.T) {
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	c := newContainer(t, engine)
	read, err := c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	manual, ok := read.ThroughputProperties.ManualThroughput()
	require.True(t, ok)
	require.EqualValues(t, 400, manual, "the least, if nothing was asked for")
	for _, wrong := range []azcosmos.ThroughputProperties{
		azcosmos.NewManualThroughputProperties(450),
		azcosmos.NewManualThroughputProperties(300),
		azcosmos.NewManualThroughputProperties(1_000_100),
		azcosmos.NewAutoscaleThroughputProperties(1500),
	} {
		_, err := c.ReplaceThroughput(t.Context(), wrong, nil)
		require.Equal(t, 400, clientStatus(t, nil, err))
	}
	_, err = c.ReplaceThroughput(t.Context(), azcosmos.NewAutoscaleThroughputProperties(4000), nil)
	require.NoError(t, err)
	raiseThroughput(t, c, 100_000)
	_, err = c.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(900), nil)
	require.Equal(t, 400, clientStatus(t, nil, err), "not below a hundredth of the highest ever")
	raiseThroughput(t, c, 1000)
	require.NoError(t, engine.Close())

	engine, err = embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	c, err = newClient(t, engine).NewContainer("db", "c")
	require.NoError(t, err)
	read, err = c.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	manual, _ = read.ThroughputProperties.ManualThroughput()
	require.EqualValues(t, 1000, manual)
	require.EqualValues(t, 1000, *read.MinThroughput)
	ranges, err := c.ReadFeedRanges(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, ranges, 10)
}

func TestThroughput_OfADatabaseIsShared(t *testing.T) {
	engine, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	account := newClient(t, engine)
	shared := azcosmos.NewAutoscaleThroughputProperties(2000)
	_, err = account.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &shared})
	require.NoError(t, err)
	db, err := account.NewDatabase("db")
	require.NoError(t, err)
	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID:                     "c",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}, nil)
	require.NoError(t, err)
	read, err := db.ReadThroughput(t.Context(), nil)
	require.NoError(t, err)
	maximum, ok := read.ThroughputProperties.AutoscaleMaxThroughput()
	require.True(t, ok)
	require.EqualValues(t, 2000, maximum)
	c, err := db.NewContainer("c")
	require.NoError(t, err)
	_, err = c.ReadThroughput(t.Context(), nil)
	require.Equal(t, 404, clientStatus(t, nil, err), "it has none of its own")
	_, err = db.Delete(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, engine.Requests())
}

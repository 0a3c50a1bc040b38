package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

func TestThrottle_LimitsAPartitionToItsShare(t *testing.T) {
	for _, tc := range []struct {
		throughput int32
		want       float64 // request units that one partition must allow in three seconds
	}{{400, 1600}, {10_000, 40_000}, {15_000, 30_000}} {
		now := time.Unix(1_700_000_000, 0)
		engine, c := openEngine(t, embedded.Options{Throttle: true, Clock: func() time.Time { return now }})
		raiseThroughput(t, c, tc.throughput)
		large := fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%0100000d"}`, 1)
		_, err := c.UpsertItem(t.Context(), pk, large, nil)
		require.NoError(t, err)
		now = now.Add(time.Hour)
		before, end, refused := engine.RequestUnits(), now.Add(3*time.Second), 0
		for now.Before(end) {
			_, err := c.UpsertItem(t.Context(), pk, large, nil)
			var throttled *azcore.ResponseError
			if !errors.As(err, &throttled) {
				require.NoError(t, err)
				continue
			}
			refused++
			require.Equal(t, 429, throttled.StatusCode)
			require.Equal(t, "3200", throttled.RawResponse.Header.Get("x-ms-substatus"))
			require.Equal(t, "0", throttled.RawResponse.Header.Get("x-ms-request-charge"))
			wait, err := time.ParseDuration(throttled.RawResponse.Header.Get("x-ms-retry-after-ms") + "ms")
			require.NoError(t, err)
			require.Positive(t, wait)
			now = now.Add(wait)
		}
		require.Positive(t, refused)
		require.InEpsilon(t, tc.want, engine.RequestUnits()-before, 0.05, "%d RU/s", tc.throughput)
	}
}

func TestEndpointOptions_UnmeteredUsesNoThroughput(t *testing.T) {
	engine, _ := openEngine(t, embedded.Options{
		Throttle: true, Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
		Latency: &embedded.Latency{Base: time.Hour, Sleep: func(context.Context, time.Duration) { t.Error("an unmetered request waits for nothing") }},
	})
	c := connectThrough(t, engine, engine.TransportOf(embedded.EndpointOptions{Unmetered: true}))
	large := fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%0100000d"}`, 1)
	for range 100 {
		_, err := c.UpsertItem(t.Context(), pk, large, nil)
		require.NoError(t, err)
	}
	require.Greater(t, engine.RequestUnits(), 4000.0, "it is charged nevertheless, ten times what a second gives")
}

func TestWithoutThrottle_NoRequestIsRefused(t *testing.T) {
	_, c := openEngine(t, embedded.Options{})
	for i := range 300 {
		createDocs(t, c, newDoc(fmt.Sprint(i), i))
	}
}

func TestFullPartition_Splits(t *testing.T) {
	_, c := openEngine(t, embedded.Options{RangeBytes: 64 << 10})
	for i := range 40 {
		key := fmt.Sprint("p", i)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), fmt.Appendf(nil, `{"id":"a","pk":%q,"data":"%08000d"}`, key, 1), nil)
		require.NoError(t, err)
	}
	ranges, err := c.ReadFeedRanges(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, ranges, 6, "40 documents of a little over 8,000 bytes in ranges of 65,536")
	ids, _ := readFeed(t, c, azcosmos.ChangeFeedOptions{})
	require.Len(t, ids, 40)
}

func TestLag_SetsTheAgeOfReads(t *testing.T) {
	now, lag := time.Unix(1_700_000_000, 0), time.Duration(0)
	_, c := openEngine(t, embedded.Options{Clock: func() time.Time { return now }, Lag: func() time.Duration { return lag }})
	createDocs(t, c, newDoc("a", 0))
	var newest *string
	for n := 1; n <= 20; n++ {
		now = now.Add(100 * time.Millisecond)
		answer, err := c.ReplaceItem(t.Context(), pk, "a", newDoc("a", n), nil)
		require.NoError(t, err)
		newest = answer.SessionToken
	}
	for back, want := range map[time.Duration]string{0: "20", 99 * time.Millisecond: "19", 100 * time.Millisecond: "19", 550 * time.Millisecond: "14"} {
		lag = back
		require.Equal(t, want, queryAll(t, c, pk, "SELECT VALUE c.n FROM c", nil)[0][0], "%v late", back)
		require.Equal(t, "20", queryAll(t, c, pk, "SELECT VALUE c.n FROM c", &azcosmos.QueryOptions{SessionToken: newest})[0][0])
	}
}

func TestLatency_DelaysAnswers(t *testing.T) {
	var waited []time.Duration
	_, c := openEngine(t, embedded.Options{Latency: &embedded.Latency{
		Base: time.Second, PerKB: time.Minute,
		Sleep: func(_ context.Context, d time.Duration) { waited = append(waited, d) },
	}})
	require.Empty(t, waited, "only requests for documents take time")
	createDocs(t, c, fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%02000d"}`, 1))
	_, err := c.DeleteItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	require.Len(t, waited, 2)
	require.InDelta(t, 120, waited[0].Seconds(), 4)
	require.Equal(t, time.Second, waited[1])
}

func TestThrottle_SharesTheBudgetOfADatabase(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	engine, err := embedded.Open(embedded.Options{Throttle: true, Clock: func() time.Time { return now }})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	account := newClient(t, engine)
	shared := azcosmos.NewManualThroughputProperties(400)
	_, err = account.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "db"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &shared})
	require.NoError(t, err)
	db, err := account.NewDatabase("db")
	require.NoError(t, err)
	upsert := func(id string) int {
		c, err := db.NewContainer(id)
		require.NoError(t, err)
		answer, err := c.UpsertItem(t.Context(), pk, newDoc("a", 1), nil)
		return clientStatus(t, answer.RawResponse, err)
	}
	for _, id := range []string{"c", "d"} {
		_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
			ID: id, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
		}, nil)
		require.NoError(t, err)
		require.Equal(t, 201, upsert(id))
	}
	for upsert("c") == 200 {
	}
	require.Equal(t, 429, upsert("d"), "what one container spends the other has no more")
	now = now.Add(time.Second)
	_, err = db.ReplaceThroughput(t.Context(), azcosmos.NewManualThroughputProperties(1000), nil)
	require.NoError(t, err)
	require.Equal(t, 200, upsert("d"))
}

func TestThrottle_QueryOfAllPartitionsWaitsForTheBusiest(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	_, c := openEngine(t, embedded.Options{Throttle: true, Clock: func() time.Time { return now }})
	raiseThroughput(t, c, 20_000)
	large := fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%0900000d"}`, 1)
	refused := 0
	for refused == 0 {
		_, err := c.UpsertItem(t.Context(), pk, large, nil)
		if err != nil {
			refused = clientStatus(t, nil, err)
		}
	}
	require.Equal(t, 429, refused)
	query := func(key azcosmos.PartitionKey) int {
		answer, err := c.NewQueryItemsPager("SELECT c.id FROM c", key, nil).NextPage(t.Context())
		return clientStatus(t, answer.RawResponse, err)
	}
	elsewhere := ""
	for i := 0; elsewhere == ""; i++ { // search for a key that belongs to the other physical partition
		key := fmt.Sprint("other", i)
		if query(azcosmos.NewPartitionKeyString(key)) == 200 {
			elsewhere = key
		}
	}
	require.Equal(t, 429, query(azcosmos.NewPartitionKey()))
	require.Equal(t, 429, query(pk))
	now = now.Add(time.Second)
	require.Equal(t, 200, query(azcosmos.NewPartitionKey()))
}

func TestScaled_IsTheBusiestSecondOfTheHour(t *testing.T) {
	now := time.Unix(1_700_000_000, 0).Truncate(time.Hour)
	engine, c := openEngine(t, embedded.Options{Throttle: true, Clock: func() time.Time { return now }})
	scaled := func() float64 {
		n, err := engine.Scaled("db", "c")
		require.NoError(t, err)
		return n
	}
	require.Zero(t, scaled(), "a manual throughput is what it is")
	_, err := c.ReplaceThroughput(t.Context(), azcosmos.NewAutoscaleThroughputProperties(4000), nil)
	require.NoError(t, err)
	require.InDelta(t, 400, scaled(), 0, "a tenth at least")
	now = now.Add(time.Second)
	before := engine.RequestUnits()
	for range 50 {
		_, err := c.UpsertItem(t.Context(), pk, newDoc("a", 1), nil)
		require.NoError(t, err)
	}
	busiest := engine.RequestUnits() - before
	require.Greater(t, busiest, 400.0)
	require.InDelta(t, busiest, scaled(), 1e-6)
	now = now.Add(time.Second)
	_, err = c.UpsertItem(t.Context(), pk, newDoc("a", 1), nil)
	require.NoError(t, err)
	require.InDelta(t, busiest, scaled(), 1e-6, "of the whole hour")
	now = now.Add(time.Hour)
	require.InDelta(t, 400, scaled(), 0)
	for err == nil {
		_, err = c.UpsertItem(t.Context(), pk, fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%0900000d"}`, 1), nil)
	}
	require.InDelta(t, 4000, scaled(), 0, "never more than the most")
	_, err = engine.Scaled("db", "x")
	require.Error(t, err)
}

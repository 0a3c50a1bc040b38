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

func TestAPhysicalPartitionGivesItsShareOfTheThroughputAndNoMore(t *testing.T) {
	for _, tc := range []struct {
		throughput int32
		want       float64 // request units of one partition in three seconds
	}{{400, 1600}, {10_000, 40_000}, {15_000, 30_000}} {
		now := time.Unix(1_700_000_000, 0)
		engine, c := open(t, embedded.Options{Throttle: true, Clock: func() time.Time { return now }})
		raise(t, c, tc.throughput)
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

func TestWithoutThrottleNothingIsRefused(t *testing.T) {
	_, c := open(t, embedded.Options{})
	for i := range 300 {
		create(t, c, doc(fmt.Sprint(i), i))
	}
}

func TestAPartitionThatIsFullSplits(t *testing.T) {
	_, c := open(t, embedded.Options{RangeBytes: 64 << 10})
	for i := range 40 {
		key := fmt.Sprint("p", i)
		_, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), fmt.Appendf(nil, `{"id":"a","pk":%q,"data":"%08000d"}`, key, 1), nil)
		require.NoError(t, err)
	}
	ranges, err := c.ReadFeedRanges(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, ranges, 6, "40 documents of a little over 8,000 bytes in ranges of 65,536")
	ids, _ := drain(t, c, azcosmos.ChangeFeedOptions{})
	require.Len(t, ids, 40)
}

func TestALaggingReadIsAsOldAsItIsTold(t *testing.T) {
	now, lag := time.Unix(1_700_000_000, 0), time.Duration(0)
	_, c := open(t, embedded.Options{Clock: func() time.Time { return now }, Lag: func() time.Duration { return lag }})
	create(t, c, doc("a", 0))
	var newest *string
	for n := 1; n <= 20; n++ {
		now = now.Add(100 * time.Millisecond)
		answer, err := c.ReplaceItem(t.Context(), pk, "a", doc("a", n), nil)
		require.NoError(t, err)
		newest = answer.SessionToken
	}
	for back, want := range map[time.Duration]string{0: "20", 99 * time.Millisecond: "19", 100 * time.Millisecond: "19", 550 * time.Millisecond: "14"} {
		lag = back
		require.Equal(t, want, all(t, c, pk, "SELECT VALUE c.n FROM c", nil)[0][0], "%v late", back)
		require.Equal(t, "20", all(t, c, pk, "SELECT VALUE c.n FROM c", &azcosmos.QueryOptions{SessionToken: newest})[0][0])
	}
}

func TestAnAnswerTakesAsLongAsItsLatencySays(t *testing.T) {
	var waited []time.Duration
	_, c := open(t, embedded.Options{Latency: &embedded.Latency{
		Base: time.Second, PerKB: time.Minute,
		Sleep: func(_ context.Context, d time.Duration) { waited = append(waited, d) },
	}})
	require.Empty(t, waited, "only requests for documents take time")
	create(t, c, fmt.Appendf(nil, `{"id":"a","pk":"p","data":"%02000d"}`, 1))
	_, err := c.DeleteItem(t.Context(), pk, "a", nil)
	require.NoError(t, err)
	require.Len(t, waited, 2)
	require.InDelta(t, 120, waited[0].Seconds(), 4)
	require.Equal(t, time.Second, waited[1])
}

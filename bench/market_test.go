package bench

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/domain"
)

// recorded is a run whose figures are kept, by metric and unit.
func recorded(scenario string) (*run, map[string]float64) {
	figures := make(map[string]float64)
	return &run{
		Options: Options{Seed: 1, Quick: true}, scenario: scenario,
		tell: func(f figure.Figure) { figures[strings.TrimSpace(f.Metric+" "+f.Unit)] = f.Value },
	}, figures
}

// little is a market that is over at once.
func little(groups ...group) market {
	return market{groups: groups, lasts: 600 * time.Millisecond, has: throughput{10_000, 10_000, 10_000}}
}

func TestEveryActorOfALittleMarketGetsWhatItWasSent(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, figures := recorded("many-actors")
	var curves []string
	r.Curve = func(c figure.Curve) { curves = append(curves, c.Name) }
	require.NoError(t, r.manyActors(t.Context(), little(group{size: 10, events: 200, batch: 5, period: 200 * time.Millisecond})))
	require.Zero(t, figures["operations that failed"])
	require.Zero(t, figures["events lost"])
	require.Zero(t, figures["events twice"])
	require.Positive(t, figures["events a second 1/s"])
	require.Positive(t, figures["peek p99 ms"])
	require.GreaterOrEqual(t, figures["peek max ms"], figures["peek p50 ms"])
	require.Positive(t, figures["dequeue p99 ms"])
	require.Positive(t, figures["heap at the end MB"])
	require.Greater(t, figures["whole life of an event RU"], 1.0)
	require.Less(t, figures["whole life of an event RU"], 50.0)
	require.Equal(t, []string{"hub peek", "hub peek of nothing", "hub dequeue", "hub save"}, curves)
}

func TestAHotActorGetsWhatItWasSent(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, figures := recorded("hot-actor")
	m := little(group{size: 5, events: 50, batch: 5, period: 200 * time.Millisecond},
		group{kind: "hot ", size: 1, events: 200, batch: 5, period: 300 * time.Millisecond})
	require.NoError(t, r.hotActor(t.Context(), m))
	for _, kind := range []string{"", "hot "} {
		require.Zero(t, figures[kind+"events lost"])
		require.Zero(t, figures[kind+"events twice"])
		require.Positive(t, figures[kind+"peek p50 ms"])
	}
	require.Positive(t, figures["hot events a second 1/s"])
	require.Positive(t, figures["peek p99 with it times"])
}

func TestWhatWasSentToAThrottledNeighbourIsNotLost(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, figures := recorded("noisy-neighbour")
	m := little(group{size: 5, events: 50, batch: 5, period: 200 * time.Millisecond},
		group{kind: "noisy ", size: 1, events: 50, batch: 5, period: 200 * time.Millisecond})
	require.NoError(t, r.noisyNeighbour(t.Context(), m, 1))
	for _, kind := range []string{"", "noisy "} {
		require.Zero(t, figures[kind+"events lost"])
		require.Zero(t, figures[kind+"events twice"])
	}
	require.Positive(t, figures["requests refused to the noisy one"])
	for _, kind := range []string{"save", "peek", "dequeue"} {
		require.Positive(t, figures[kind+" p99 with it times"], kind)
	}
}

func TestOnlyThePartitionsOfTheNoisyOneAreThrottled(t *testing.T) {
	line := &throttledLine{throttled: &throttled{partition: "noisy-0000"}}
	for key, want := range map[string]bool{
		`["noisy-0000"]`:                    true,
		`["noisy-0000|TimeSeries"]`:         true,
		`["noisy-0000|TimeSeries|RSM-012"]`: true,
		`["noisy-00001"]`:                   false,
		`["actor-0000"]`:                    false,
		``:                                  false,
	} {
		require.Equal(t, want, line.isNamed(key), key)
	}
}

func TestEventsAreCountedHoweverTheBodyArrives(t *testing.T) {
	body := "[" + strings.Repeat(`{"sequence":1,"id":"x"},`, 5000) + `{"sequence":2}]`
	n, err := countEvents(strings.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, 5001, n)
	n, err = countEvents(iotest.OneByteReader(strings.NewReader(body)))
	require.NoError(t, err)
	require.Equal(t, 5001, n)
	_, err = countEvents(iotest.TimeoutReader(strings.NewReader(body)))
	require.ErrorIs(t, err, iotest.ErrTimeout)
}

func TestEventsAreThoseOfTheSeed(t *testing.T) {
	of := func(seed uint64) []byte { return appendEvents(nil, "actor-0001", 20, rand.New(rand.NewPCG(seed, 0))) }
	require.Equal(t, of(1), of(1))
	require.NotEqual(t, of(1), of(2))
	var events []struct {
		ID, Recipient string
		Weight        int
	}
	require.NoError(t, json.Unmarshal(of(1), &events))
	require.Len(t, events, 20)
	for _, e := range events {
		_, err := domain.ParseEventID(e.ID)
		require.NoError(t, err)
		require.Equal(t, "actor-0001", e.Recipient)
	}
}

func TestTheOldestEventIsTheFirstThatWasNotFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(nil, 1, group{size: 2, events: 1, batch: 1, period: time.Second})
		save := func(m *recipient, events int) {
			m.isSent(events)
			m.isSaved(events)
			pause := time.NewTimer(time.Second)
			<-pause.C
		}
		save(c.members[0], 20)
		save(c.members[1], 20)
		save(c.members[0], 20)
		all, oldest := c.now()
		require.Equal(t, stock{60, 60, 0}, all)
		require.Equal(t, 3*time.Second, oldest)
		c.members[0].has(20)
		_, oldest = c.now()
		require.Equal(t, 2*time.Second, oldest)
		c.members[1].has(20)
		c.members[0].has(20)
		all, oldest = c.now()
		require.Zero(t, oldest)
		require.Zero(t, all.lost()+all.twice())
		c.members[0].has(1)
		all, _ = c.now()
		require.Equal(t, 1, all.twice())
	})
}

func TestHeapGrowthIsOfTheSecondHalf(t *testing.T) {
	h := new(heapSize)
	for i := range 100 {
		size := 100.0
		if i < 50 {
			size = float64(i)
		}
		if i >= 90 {
			size = 105
		}
		h.sizes = append(h.sizes, size)
	}
	require.InDelta(t, 5, h.grows(), 1e-9)
	require.Equal(t, 105.0, h.end())
	require.Equal(t, load.Outcome{}, h.look(t.Context()))
	require.Len(t, h.sizes, 101)
}

package load_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/bench/load"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sleepTask returns a task that takes d.
func sleepTask(kind string, d time.Duration) load.Task {
	return func(ctx context.Context) load.Outcome {
		_ = clock.Sleep(ctx, d)
		return load.Outcome{Kind: kind}
	}
}

func eachSecond(task load.Task) []load.Stream {
	return []load.Stream{{Arrivals: load.Every(time.Second, 0), Task: task}}
}

// runPlan runs a plan in simulated time.
func runPlan(t *testing.T, p load.Plan) (result *load.Result, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var err error
		result, err = load.Run(t.Context(), p)
		require.NoError(t, err)
		took = time.Since(began)
	})
	return result, took
}

// requireNear compares durations with the precision of a histogram.
func requireNear(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InEpsilon(t, want, got, 0.001)
}

func TestRun_StartsOperationsOnTimeIfTheServiceIsSlow(t *testing.T) {
	result, took := runPlan(t, load.Plan{Streams: eachSecond(sleepTask("peek", 5*time.Second)), Lasts: time.Minute})
	peeks := result.LatenciesOf("peek")
	require.EqualValues(t, 60, peeks.Count())
	requireNear(t, 5*time.Second, peeks.Percentile(50))
	requireNear(t, 5*time.Second, peeks.Percentile(100))
	require.Equal(t, 6, result.Workers, "one ends when another begins")
	require.Zero(t, result.Lateness)
	require.LessOrEqual(t, result.Backlog, 0)
	require.Equal(t, 64*time.Second, took, "what was due at 59 s is waited for")
}

func TestLatency_BeginsAtTheDueTime(t *testing.T) {
	// The service stalls for ten seconds. A closed loop would count one slow
	// operation.
	stalled := func(ctx context.Context) load.Outcome {
		if since := time.Since(midnight); since >= 20*time.Second && since < 30*time.Second {
			_ = clock.Sleep(ctx, 30*time.Second-since)
		}
		return load.Outcome{Kind: "peek"}
	}
	halfPast := []load.Stream{{Arrivals: load.Every(time.Second, 500*time.Millisecond), Task: stalled}}
	result, _ := runPlan(t, load.Plan{Streams: halfPast, Lasts: 100 * time.Second, Limit: 1})
	peeks := result.LatenciesOf("peek")
	require.EqualValues(t, 100, peeks.Count())
	requireNear(t, 9500*time.Millisecond, peeks.Percentile(100))
	requireNear(t, 8500*time.Millisecond, peeks.Percentile(99))
	requireNear(t, 500*time.Millisecond, peeks.Percentile(91))
	require.Equal(t, time.Microsecond, peeks.Percentile(90))
	require.Equal(t, 8500*time.Millisecond, result.Lateness, "with one worker the generator falls behind, and says so")
	require.Equal(t, 8, result.Backlog, "when the tenth was due")
	require.Equal(t, 1, result.Workers)
}

// midnight is the start time of a bubble.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestThen_IsDueWhenTheOperationBeforeItEnds(t *testing.T) {
	peek := func(ctx context.Context) load.Outcome {
		_ = clock.Sleep(ctx, 3*time.Second)
		return load.Outcome{Kind: "peek", Then: sleepTask("dequeue", 2*time.Second)}
	}
	result, took := runPlan(t, load.Plan{Streams: eachSecond(peek), Lasts: 10 * time.Second})
	require.Equal(t, []string{"dequeue", "peek"}, result.Kinds())
	requireNear(t, 3*time.Second, result.LatenciesOf("peek").Percentile(100))
	requireNear(t, 2*time.Second, result.LatenciesOf("dequeue").Percentile(100))
	require.EqualValues(t, 10, result.LatenciesOf("dequeue").Count())
	require.Equal(t, 14*time.Second, took)
}

func TestSettle_RunsOperationsWithoutCountingThem(t *testing.T) {
	done := 0
	result, _ := runPlan(t, load.Plan{Lasts: time.Minute, Settle: 20 * time.Second, Streams: eachSecond(func(context.Context) load.Outcome {
		done++
		return load.Outcome{Kind: "save"}
	})})
	require.Equal(t, 60, done)
	require.EqualValues(t, 40, result.LatenciesOf("save").Count())
}

func TestFailures_AreCountedByKind(t *testing.T) {
	n := 0
	result, _ := runPlan(t, load.Plan{Lasts: 10 * time.Second, Streams: eachSecond(func(context.Context) load.Outcome {
		n++
		return load.Outcome{Kind: "save", Failed: map[int]string{3: "503", 4: "503", 7: "no answer"}[n]}
	})})
	require.Equal(t, map[string]int{"save: 503": 2, "save: no answer": 1}, result.Failures())
	require.EqualValues(t, 10, result.LatenciesOf("save").Count())
}

func TestRun_ReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		began := time.Now()
		result, err := load.Run(ctx, load.Plan{Streams: eachSecond(sleepTask("peek", time.Hour)), Lasts: time.Hour, Limit: 3})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Second+time.Millisecond, time.Since(began))
		require.EqualValues(t, 3, result.LatenciesOf("peek").Count(), "those that had begun; the rest of the queue is dropped")
	})
}

func TestRun_LastsForTheWholeTimeOfThePlan(t *testing.T) {
	once := load.Stream{Arrivals: load.Every(time.Hour, time.Second), Task: sleepTask("peek", time.Second)}
	result, took := runPlan(t, load.Plan{Streams: []load.Stream{once}, Lasts: time.Minute})
	require.EqualValues(t, 1, result.LatenciesOf("peek").Count())
	require.Equal(t, time.Minute, took)
}

func TestRun_ReturnsImmediatelyWithoutStreams(t *testing.T) {
	result, took := runPlan(t, load.Plan{Lasts: time.Hour})
	require.Empty(t, result.Kinds())
	require.Zero(t, took)
}

func TestArrivals_AreTheSameForTheSameSeed(t *testing.T) {
	of := func(seed uint64) (all []time.Duration) {
		next := load.Poisson(100, rand.New(rand.NewPCG(seed, 0)))
		for range 100_000 {
			all = append(all, next())
		}
		return all
	}
	require.Equal(t, of(1), of(1))
	require.NotEqual(t, of(1), of(2))
	require.IsIncreasing(t, of(1)[:1000])
	require.InEpsilon(t, 1000*time.Second, of(1)[99_999], 0.02, "so many a second")
}

func TestStreams_AreMergedByDueTime(t *testing.T) {
	var order []string
	says := func(what string) load.Task {
		return func(context.Context) load.Outcome {
			order = append(order, what)
			return load.Outcome{}
		}
	}
	result, _ := runPlan(t, load.Plan{Lasts: 10 * time.Second, Limit: 1, Streams: []load.Stream{
		{Arrivals: load.Every(4*time.Second, time.Second), Task: says("a")},
		{Arrivals: load.Every(3*time.Second, 0), Task: says("b")},
		{Arrivals: load.Every(9*time.Second, 0), Task: says("c")},
	}})
	require.Equal(t, []string{"b", "c", "a", "b", "a", "b", "a", "b", "c"}, order)
	require.Empty(t, result.Kinds(), "what has no kind is not counted")
}

func TestLatency_OutsideTheRangeIsClamped(t *testing.T) {
	l := load.NewLatencies()
	require.Zero(t, l.Percentile(50))
	l.Record(0)
	l.Record(time.Hour)
	other := load.NewLatencies()
	other.Record(time.Second)
	l.Add(other)
	require.EqualValues(t, 3, l.Count())
	p := l.Percentiles()
	requireNear(t, time.Second, p.P50)
	requireNear(t, 10*time.Minute, p.Max)
	require.Equal(t, time.Microsecond, l.Percentile(1))
}

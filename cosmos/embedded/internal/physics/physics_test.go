package physics

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const ru = 1_000_000

func TestBudget_RefillsUpToOneSecond(t *testing.T) {
	now := time.Unix(0, 0)
	th := NewThrottle(func() time.Time { return now })
	b := []Budget{{Key: "a", PerSecond: 400 * ru}}
	require.Zero(t, th.Admit(b))
	th.Spend(b, 500*ru)
	require.Equal(t, 250*time.Millisecond+time.Microsecond, th.Admit(b), "a debt of 100 RU at 400 a second")
	now = now.Add(250 * time.Millisecond)
	require.Positive(t, th.Admit(b), "nothing is left is not enough")
	now = now.Add(time.Microsecond)
	require.Zero(t, th.Admit(b))
	now = now.Add(time.Hour)
	th.Spend(b, 400*ru)
	require.Positive(t, th.Admit(b), "no more than a second is saved up")
	require.Zero(t, th.Admit([]Budget{{Key: "b", PerSecond: 400 * ru}}))
}

// TestThrottle_SpendsAtMostItsRateAndOneRequest sends random traffic. The throttle must never allow more than its rate
// plus one request.
func TestThrottle_SpendsAtMostItsRateAndOneRequest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		now := time.Unix(0, 0)
		th := NewThrottle(func() time.Time { return now })
		perSecond := int64(rapid.IntRange(1, 10_000).Draw(r, "RU/s")) * ru
		b := []Budget{{Key: "a", PerSecond: perSecond}}
		spent, largest, passed := int64(0), int64(0), time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(r, "requests") {
			step := time.Duration(rapid.IntRange(0, 2_000_000).Draw(r, "µs")) * time.Microsecond
			now, passed = now.Add(step), passed+step
			if wait := th.Admit(b); wait > 0 {
				now, passed = now.Add(wait), passed+wait
				require.Zero(t, th.Admit(b), "who waits as told is let in")
			}
			charge := int64(rapid.IntRange(1, 100_000_000).Draw(r, "charge"))
			th.Spend(b, charge)
			spent, largest = spent+charge, max(largest, charge)
		}
		require.LessOrEqual(t, float64(spent-largest), float64(perSecond)*(1+passed.Seconds())+1)
	})
}

func TestSpend_SharesAChargeAmongBudgetsWithoutLoss(t *testing.T) {
	now := time.Unix(0, 0)
	th := NewThrottle(func() time.Time { return now })
	b := []Budget{{Key: "a", PerSecond: 10 * ru}, {Key: "b", PerSecond: 10 * ru}, {Key: "c", PerSecond: 10 * ru}}
	th.Spend(b, 10)
	left := int64(0)
	for _, f := range th.funds {
		left += f.left
	}
	require.EqualValues(t, 30*ru-10, left)
	require.True(t, th.Spare(b[0], 6*ru))
	require.False(t, th.Spare(b[0], 1), "background work leaves half")
}

func TestLatency_IsTheSameForTheSameSeed(t *testing.T) {
	waits := func(seed uint64) (all []time.Duration) {
		d := NewDelayer(Latency{
			Base: time.Millisecond, PerKB: time.Second, Jitter: time.Millisecond, Seed: seed,
			Sleep: func(_ context.Context, d time.Duration) { all = append(all, d) },
		})
		for i := range int64(20) {
			d.Delay(t.Context(), i*512)
		}
		return all
	}
	require.Equal(t, waits(1), waits(1))
	require.NotEqual(t, waits(1), waits(2))
	for i, wait := range waits(3) {
		least := time.Millisecond + time.Duration(i)*time.Second/2
		require.GreaterOrEqual(t, wait, least)
		require.Less(t, wait, least+time.Millisecond)
	}
	slow := 0
	d := NewDelayer(Latency{Slow: time.Second, SlowOf1000: 10, Sleep: func(_ context.Context, d time.Duration) {
		if d == time.Second {
			slow++
		}
	}})
	for range 10_000 {
		d.Delay(t.Context(), 0)
	}
	require.InDelta(t, 100, slow, 40, "one of a hundred is slow")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		NewDelayer(Latency{Base: time.Minute}).Delay(t.Context(), 0)
		require.Equal(t, time.Minute, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		NewDelayer(Latency{Base: time.Minute}).Delay(ctx, 0)
		require.Equal(t, time.Minute, time.Since(began), "nobody waits any more")
	})
}

package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

var published = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func TestDecideRetry_WaitsInTheQueueOfTheAttempt(t *testing.T) {
	delays := []time.Duration{0, time.Minute, 10 * time.Minute}
	p := domain.QueuePolicy(delays, 99)
	failed := published.Add(time.Hour)
	for attempts, want := range map[int]time.Duration{1: time.Minute, 2: 10 * time.Minute} {
		require.Equal(t, domain.RetryDecision{Due: failed.Add(want)}, domain.DecideRetry(p, published, failed, attempts, domain.Answer{Status: 500}))
	}
	require.True(t, domain.DecideRetry(p, published, failed, 3, domain.Answer{Status: 500}).Dead, "a fourth queue does not exist")
	require.True(t, domain.DecideRetry(domain.QueuePolicy(delays, 2), published, failed, 2, domain.Answer{}).Dead, "no attempts are left")
}

func TestDecideRetry_FollowsTheScheduleOfAWatch(t *testing.T) {
	p := domain.WatchPolicy(time.Hour, 5)
	soon := func(attempts int) time.Time {
		return domain.DecideRetry(p, published, published.Add(time.Second), attempts, domain.Answer{}).Due
	}
	for attempts, hours := range map[int]int{1: 1, 2: 2, 3: 4, 4: 8} {
		require.Equal(t, published.Add(time.Duration(hours)*time.Hour), soon(attempts))
	}
	late := published.Add(100 * time.Hour)
	for attempts, hours := range map[int]int{1: 1, 2: 1, 3: 2, 4: 4} {
		require.Equal(t, late.Add(time.Duration(hours)*time.Hour), domain.DecideRetry(p, published, late, attempts, domain.Answer{}).Due)
	}
	require.True(t, domain.DecideRetry(p, published, late, 5, domain.Answer{}).Dead)
	require.False(t, p.IsSuccess(domain.Answer{Status: 204}), "exactly 200")
}

func TestDecideRetry_HoldsForTheTimeInRetryAfter(t *testing.T) {
	v := domain.DecideRetry(domain.DefaultPolicy(), published, published, 1, domain.Answer{Status: 429, RetryAfter: 40 * time.Hour})
	require.Equal(t, published.Add(40*time.Hour), v.Hold)
	require.False(t, v.Pause)
	require.True(t, domain.DecideRetry(domain.DefaultPolicy(), published, published, 1, domain.Answer{Status: 410}).Pause)
}

func TestDecideRetry_KeepsEachGapWithinTheJitter(t *testing.T) {
	for _, p := range []domain.Policy{domain.DefaultPolicy(), domain.BrokerPolicy(5*time.Second, 5)} {
		rapid.Check(t, func(t *rapid.T) {
			attempts := rapid.IntRange(1, p.Attempts-1).Draw(t, "attempts")
			failed := published.Add(time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "failed after")))
			v := domain.DecideRetry(p, published, failed, attempts, domain.Answer{})
			gap := v.Due.Sub(failed)
			want := min(5*time.Second<<(attempts-1), 12*time.Hour)
			require.GreaterOrEqual(t, gap, want-want/5)
			require.LessOrEqual(t, gap, want+want/5)
			require.LessOrEqual(t, gap, p.Longest())
			require.Equal(t, v, domain.DecideRetry(p, published, failed, attempts, domain.Answer{}), "it is pure")
			require.True(t, domain.DecideRetry(p, published, failed, p.Attempts, domain.Answer{}).Dead)
		})
	}
}

func TestDecideRetry_SpreadsReceiversThatFailTogether(t *testing.T) {
	seen := make(map[time.Time]bool)
	for i := range 100 {
		seen[domain.DecideRetry(domain.DefaultPolicy(), published.Add(time.Duration(i)), published, 5, domain.Answer{}).Due] = true
	}
	require.Greater(t, len(seen), 95)
}

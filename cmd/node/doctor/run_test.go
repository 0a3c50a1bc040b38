package doctor_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/doctor"
)

func passing(context.Context) []doctor.Finding {
	return []doctor.Finding{doctor.Passed("", "fine")}
}

func failing(context.Context) []doctor.Finding {
	return []doctor.Finding{doctor.Fail("", "broken\nin two lines", "repair it")}
}

func TestRun_ReportsInTheOrderOfTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context) []doctor.Finding {
			<-time.After(time.Second)
			return []doctor.Finding{doctor.Passed("a", "slow"), doctor.Warn("b", "slow", "wait")}
		}
		began := time.Now()
		report := doctor.Run(t.Context(), []doctor.Check{
			{Name: "last", Needs: []string{"slow", "absent"}, Run: passing},
			{Name: "slow", Run: slow},
			{Name: "quick", Run: failing},
		}, doctor.Options{})
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, []doctor.Finding{
			{Check: "last", State: doctor.OK, Text: "fine"},
			{Check: "slow", Subject: "a", State: doctor.OK, Text: "slow"},
			{Check: "slow", Subject: "b", State: doctor.Warning, Text: "slow", Remedy: "wait"},
			{Check: "quick", State: doctor.Fault, Text: "broken; in two lines", Remedy: "repair it"},
		}, report.Findings)
		require.Equal(t, 1, report.Count(doctor.Fault))
		require.Equal(t, 2, report.Count(doctor.OK))
	})
}

func TestRun_NamesTheFaultBecauseOfWhichACheckDidNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		counting := func(context.Context) []doctor.Finding { runs.Add(1); return passing(t.Context()) }
		report := doctor.Run(t.Context(), []doctor.Check{
			{Name: "a", Run: failing},
			{Name: "b", Needs: []string{"a"}, Run: counting},
			{Name: "c", Needs: []string{"b"}, Run: counting},
			{Name: "d", Run: counting},
		}, doctor.Options{})
		require.Equal(t, "not checked, since a has a fault", report.Findings[1].Text)
		require.Equal(t, "not checked, since a has a fault", report.Findings[2].Text)
		require.Equal(t, 2, report.Count(doctor.NotChecked))
		require.EqualValues(t, 1, runs.Load())
	})
}

func TestRun_ReturnsInTimeAlthoughChecksHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		hanging := func(context.Context) []doctor.Finding { <-release; return passing(t.Context()) }
		obedient := func(ctx context.Context) []doctor.Finding { <-ctx.Done(); return failing(ctx) }
		patient := func(ctx context.Context) []doctor.Finding {
			<-ctx.Done()
			return []doctor.Finding{doctor.Warn("", "late", "wait")}
		}
		began := time.Now()
		report := doctor.Run(t.Context(), []doctor.Check{
			{Name: "disk", Run: hanging},
			{Name: "network", Run: obedient},
			{Name: "one", Run: patient},
			{Name: "two", Needs: []string{"one"}, Limit: 8 * time.Second, Run: patient},
			{Name: "three", Needs: []string{"two"}, Run: patient},
			{Name: "four", Needs: []string{"three"}, Run: patient},
		}, doctor.Options{})
		require.Less(t, time.Since(began), 15*time.Second)
		require.Equal(t, "it did not end within 5s", report.Findings[0].Text)
		require.Equal(t, doctor.Fault, report.Findings[1].State)
		require.Equal(t, "late", report.Findings[3].Text)
		require.Equal(t, "not checked, since the time of all checks is over", report.Findings[5].Text)
	})
}

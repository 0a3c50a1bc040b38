package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/baseline"
	"github.com/messagehub/messagehub/cosmos"
)

func TestColdSave_IsMeasuredWithEachLayout(t *testing.T) {
	a := openFastAccount(t)
	for _, l := range append(baseline.Layouts(), hub) {
		require.NoError(t, l.Provision(t.Context(), a, perContainer))
		found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error {
			return coldStage{recipients: 2, stored: 30, kinds: 1, nodes: 1, warm: 1}.measure(t.Context(), r, a, l, &eventSource{seed: 1})
		})
		require.Len(t, found, 9)
		require.Positive(t, found[l.Name+" cold save with 30 events stored, request units, ratio to warm"], l.Name)
	}
}

func TestSingleEvents_CostLessWithTails(t *testing.T) {
	p := testSite{Account: openFastAccount(t)}
	src := eventSource{seed: 1}
	paged, err := measureBusyRate(t.Context(), p, &src, 50, time.Second, -1)
	require.NoError(t, err)
	tailed, err := measureBusyRate(t.Context(), p, &src, 50, time.Second, cosmos.DefaultTailEvents)
	require.NoError(t, err)
	require.Less(t, tailed.units, paged.units/2)
}

func TestKinds_AreSavedAndRemoved(t *testing.T) {
	found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error { return measureKindsOf(t.Context(), r, hub) })
	require.Equal(t, 5.0, found["hub accepted new kinds of 5 after 100 kinds are gone"])
	require.Greater(t, found["hub head with 100 kinds"], found["hub head with 1 kinds"])
}

func TestLargeBacklog_IsScaled(t *testing.T) {
	a := openFastAccount(t)
	found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error { return measureLargeBacklogOn(t.Context(), r, a) })
	require.Positive(t, found["hub save of one event with 1000000 events waiting, requests"])
	require.LessOrEqual(t, found["hub save of one event, requests, maximum minus minimum"], 1.0)
	require.LessOrEqual(t, found["hub save for two recipients alternately, request units, ratio to one"], 1.1)
}

func TestYear_PassesInSimulatedTime(t *testing.T) {
	y := &simulatedYear{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), every: 6 * time.Hour, days: 3}
	found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error {
		return y.runYear(t.Context(), r, "days", func(float64) {})
	})
	require.Equal(t, 12.0, found["hub days, events kept"], "none is older than the retention")
	require.Equal(t, 4, y.clock().Day())
}

func TestDequeue_IsMeasuredDuringRepeatedPeeks(t *testing.T) {
	a, err := account.Open(t.Context(), account.Options{Consistency: "Session"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	require.Equal(t, "Session", a.Consistency())
	require.NoError(t, hub.Provision(t.Context(), a, perContainer))
	found := measureFigures(t, Options{Quick: true, Seed: 1}, func(r *scenarioRun) error {
		return repeatingPeeksOf(t.Context(), r, a, hub, "Session")
	})
	require.Len(t, found, 6)
	require.Positive(t, found["hub dequeue beside 4 repeating clients, Session, p99"])
}

func TestPayloads_HaveTheConfiguredSize(t *testing.T) {
	src := eventSource{payload: 300}
	events := src.newEvents(1, src.newActor(), 1)
	require.Len(t, events[0].Payload, 300)
}

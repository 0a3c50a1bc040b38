package bench

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/figure"
)

// newQuickObjects returns the scenario of a quick run, which appends its figures
// to found.
func newQuickObjects(t *testing.T) (b *objectBench, found *[]figure.Figure) {
	t.Helper()
	found = new([]figure.Figure)
	r := &scenarioRun{Options: Options{Quick: true, Seed: 1}, scenario: "ledger", tell: func(f figure.Figure) { *found = append(*found, f) }}
	b = &objectBench{&pushBench{scenarioRun: r, client: &http.Client{Transport: &http.Transport{}}}}
	t.Cleanup(b.client.CloseIdleConnections)
	return b, found
}

func TestObjectLoad_HasEventsOfEachKind(t *testing.T) {
	s := newObjectSource(1)
	require.Equal(t, 100, s.newLoad(100, maxObjectMessage, maxObjectMessage, s.createdEvent).stored)
	l := s.newLoad(3_000, minObjectMessage, maxObjectMessage, s.mixedEvent)
	require.Equal(t, 3_000, l.events)
	require.InDelta(t, 2_000, l.stored, 100, "a third are duplicates")
	require.InDelta(t, 1_100, s.objects, 100, "a third are of new objects")
	require.InDelta(t, 3_000/55, len(l.messages), 15)
}

func TestObjectLoad_IsCheckedByTheAnswersOfTheHub(t *testing.T) {
	b, _ := newQuickObjects(t)
	require.NoError(t, b.runAtHub(t.Context(), nil, func(url string) error {
		s := newObjectSource(1)
		require.NoError(t, b.reportNewObjects(t.Context(), url, s, 2_100))
		h := objectHub{url, s.objects}
		places, err := b.findPagePaths(t.Context(), h, "key")
		require.NoError(t, err)
		require.Len(t, places, 2, "large pages that are full")
		for _, place := range places {
			rows, next, err := b.objectClient(url).Page(t.Context(), place)
			require.NoError(t, err)
			require.Equal(t, objectPage, rows)
			require.NotEmpty(t, next)
		}
		h.objects++
		_, err = b.findPagePaths(t.Context(), h, "any")
		require.ErrorContains(t, err, "a list of 2101 objects has 2100")

		l := s.newLoad(300, minObjectMessage, maxObjectMessage, s.mixedEvent)
		took, err := b.sendLoad(t.Context(), l, objectSenders, url)
		require.NoError(t, err)
		require.Positive(t, took)
		_, err = b.sendLoad(t.Context(), l, objectSenders, url)
		require.ErrorContains(t, err, "of 300 events", "all of them are duplicates now")
		return nil
	}))
}

func TestObjectEvents_CostLittleMoreThanTheLimit(t *testing.T) {
	b, found := newQuickObjects(t)
	require.NoError(t, b.measurePrices(t.Context()))
	require.Len(t, *found, 28)
	for i := 0; i < len(*found); i += 2 {
		ours, least := (*found)[i], (*found)[i+1]
		require.True(t, ours.OK, ours.Metric)
		require.Contains(t, least.Metric, ours.Metric)
		require.InDelta(t, least.Value, ours.Value, 0.08*least.Value, ours.Metric)
	}
}

func TestCrawl_OfUnchangedObjectsStoresNothing(t *testing.T) {
	b, found := newQuickObjects(t)
	require.NoError(t, b.measureCrawls(t.Context()))
	require.Len(t, *found, 4)
	for _, f := range *found {
		require.True(t, f.OK, f.Metric)
	}
}

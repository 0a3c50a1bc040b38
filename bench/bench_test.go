package bench_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/bench/figure"
)

func TestScenario_KeepsTheFiguresBeforeItsError(t *testing.T) {
	broken := errors.New("broken")
	s := bench.NewScenario("breaks", "breaks after a figure", func(_ context.Context, o bench.Options, tell func(figure.Figure)) error {
		tell(figure.Figure{Metric: "seed", Value: float64(o.Seed)})
		return broken
	})
	var reported []figure.Figure
	err := s.Run(t.Context(), bench.Options{Seed: 7}, func(f figure.Figure) { reported = append(reported, f) })
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "breaks")
	require.Equal(t, []figure.Figure{{Metric: "seed", Value: 7}}, reported)
}

func TestFind_FailsForAnUnknownScenario(t *testing.T) {
	_, err := bench.Find("nothing-of-the-kind")
	require.ErrorContains(t, err, `no scenario "nothing-of-the-kind"`)
	all, err := bench.Find()
	require.NoError(t, err)
	require.Equal(t, len(bench.Scenarios()), len(all), "no name is all of them")
}

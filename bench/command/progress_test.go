package command

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func TestProgressBar_IsOneLineThatIsRemovedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := newProgress(&b, 3)
		p.Watched = true
		tell := p.beginScenario("worst-peek")
		synctest.Wait()
		tell(bench.Progress{Step: "filling", Done: 0.5})
		tell(bench.Progress{Step: "filling", Done: 0.501}) // progress of less than one per cent
		after := time.NewTimer(1500 * time.Millisecond)
		<-after.C
		tell(bench.Progress{Step: strings.Repeat("a long step ", 10), Done: 2})
		p.endScenario()
		require.NotContains(t, b.String(), "\n")
		drawn := strings.Split(strings.TrimPrefix(b.String(), terminal.ClearLine), terminal.ClearLine)
		require.Equal(t, []string{
			"worst-peek (1 of 3) ░░░░░░░░░░░░░░░░░░░░   0 % 0s",
			"worst-peek (1 of 3) ██████████░░░░░░░░░░  50 % 0s  filling",
			"worst-peek (1 of 3) ██████████░░░░░░░░░░  50 % 1s  filling",
		}, drawn[:3])
		require.Equal(t, 79, utf8.RuneCountInString(drawn[3]), "it does not wrap")
		require.True(t, strings.HasPrefix(drawn[3], "worst-peek (1 of 3) ████████████████████ 100 % 2s  a long step"))
		require.Equal(t, "", drawn[4])
		require.Len(t, drawn, 5)
	})
}

func TestPercentOf_IsBetween0And100(t *testing.T) {
	for done, want := range map[float64]int{-1: 0, 0.999: 99, 1: 100, 7: 100, math.Inf(1): 100} {
		require.Equal(t, want, percentOf(bench.Progress{Done: done}))
	}
	require.Equal(t, 0, percentOf(bench.Progress{Done: math.NaN()}))
}

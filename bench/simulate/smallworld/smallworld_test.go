package smallworld

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func explored(t *testing.T, s *Scenario, most int) (Result, time.Duration) {
	t.Helper()
	began := time.Now()
	var result Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		result, err = Explore(s, func(states int) bool { return most > 0 && states > most })
		require.NoError(t, err)
	})
	return result, time.Since(began)
}

func dev() int { n, _ := strconv.Atoi(os.Getenv("MOST")); return n }

func TestDev(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			if only := os.Getenv("ONLY"); only != "" && only != s.Name {
				return
			}
			r, d := explored(t, s, dev())
			fmt.Printf("%-30s states %6d transitions %7d depth %3d width %2d stores %5d histories %6d ends %5d exhausted %t %v\n", r.Scenario, r.States, r.Transitions, r.Depth, r.Width, r.Stores, r.Histories, r.Ends, r.Exhausted, d.Round(time.Millisecond))
			if r.Violation != nil {
				fmt.Println(r.Violation)
			}
		})
	}
}

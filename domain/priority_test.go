package domain_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

func prioritySet(all ...int) (set domain.PrioritySet) {
	for _, p := range all {
		set.Add(p)
	}
	return set
}

func TestPriorityTurn_PicksTheHighestAndEachEighthTimeTheLowest(t *testing.T) {
	var turn domain.PriorityTurn
	for pick := 1; pick <= 1000; pick++ {
		want := 9
		if pick%8 == 0 {
			want = 2
		}
		require.Equal(t, want, turn.Next(prioritySet(2, 9)), "pick %d", pick)
		require.Equal(t, 5, turn.Next(prioritySet(5)))
		turn.Pick()
	}
}

// This test checks rule P10 of the cursor model: each waiting priority is picked within a limited
// number of picks.
func TestPriorityTurn_PicksEachPriorityWithinALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		waits := rapid.IntRange(0, domain.Priorities-1).Draw(t, "priority")
		var turn domain.PriorityTurn
		for range rapid.IntRange(0, 2000).Draw(t, "picks before") {
			turn.Pick()
		}
		for range 64 * domain.Priorities {
			set := domain.PrioritySet(rapid.Uint16Range(0, 1<<domain.Priorities-1).Draw(t, "others"))
			set.Add(waits)
			picked := turn.Next(set)
			require.True(t, set.Has(picked))
			turn.Pick()
			if picked == waits {
				return
			}
		}
		t.Fatal("the priority was not picked")
	})
}

package simulate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/coverage"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

func TestMemberChecker_FindsForbiddenTakeovers(t *testing.T) {
	asked, err := domain.ParseCursorID("c|receiver-0")
	require.NoError(t, err)
	for _, tc := range []struct {
		name    string
		isOff   bool
		diesAt  time.Duration // time from the start of the node to the owner's death
		takesAt time.Duration // after that
		isAsked bool
		fails   bool
	}{
		{"a dead node's", false, time.Minute, 10 * time.Second, false, false},
		{"a living node's", false, time.Minute, 9 * time.Second, false, true},
		{"that of a node that dies while this one starts", true, 9 * time.Second, 10 * time.Second, false, false},
		{"a dead node's, with the fail-safe off", true, time.Minute, time.Hour, false, true},
		{"a dead node's, when asked", true, time.Minute, 10 * time.Second, true, false},
		{"a living node's, when asked", true, time.Minute, 9 * time.Second, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var found error
				nodes := memory.NewNodes(time.Now)
				n := &pushNode{sim: &pushSimulation{simulation: &simulation{Scheduler: &scheduler.Scheduler{Coverage: coverage.New()}}}}
				m := newMemberChecker(n)
				m.store, m.isDisabled, m.fail = nodes, tc.isOff, func(err error) { found = err }
				var a repository.Assignment
				a.Owners[repository.ShardOf(asked)] = "other"
				require.NoError(t, nodes.Assign(t.Context(), a))
				read := func(beat int64) {
					require.NoError(t, nodes.Beat(t.Context(), repository.Node{Incarnation: "other", Beat: beat}))
					_, a, err = m.Nodes(t.Context())
					require.NoError(t, err)
				}
				read(1)
				<-time.After(tc.diesAt)
				read(2)
				<-time.After(tc.takesAt)
				if tc.isAsked {
					m.noteAsked(asked)
				}
				a.Owners[repository.ShardOf(asked)] = "self"
				require.NoError(t, m.Assign(t.Context(), a))
				if tc.fails {
					require.ErrorContains(t, found, "P21: ")
					return
				}
				require.NoError(t, found)
			})
		})
	}
}

package level

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
)

func TestANewStore_HasTheHighestLevel(t *testing.T) {
	r := newRig(t)
	st := r.status(r.open(optionsUpTo(2)))
	require.Equal(t, 2, st.Level)
	require.Len(t, st.History, 1)
	require.Equal(t, []any{"created", 2, "v2"}, []any{st.History[0].What, st.History[0].Level, st.History[0].Version})
	require.Equal(t, 2, r.status(r.open(optionsUpTo(3))).Level, "a newer version does not raise it by itself")
}

func TestAStoreOfAVersionBeforeLevels_HasLevel1(t *testing.T) {
	r := newRig(t)
	opts := optionsUpTo(3)
	opts.IsUsed = isUsed
	require.Equal(t, 1, r.status(r.open(opts)).Level)
}

func TestAnOlderVersion_IsRefusedWithTheVersionToUse(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(2)
	_, err := Open(t.Context(), r.account.Connect(), optionsUpTo(1))
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	require.ErrorContains(t, err, "the store has level 2, and this version knows levels up to 1: use version v2 or a newer one")
}

func TestADocumentOfANewerFormat_IsRefused(t *testing.T) {
	r := newRig(t)
	s := r.open(optionsUpTo(1))
	r.patchDocument("/v", 1000)
	for name, call := range map[string]func() error{
		"Open":   func() error { _, err := Open(t.Context(), r.account.Connect(), optionsUpTo(1)); return err },
		"Join":   func() error { _, err := s.Join(t.Context(), "a"); return err },
		"Status": func() error { _, err := s.Status(t.Context()); return err },
		"Run":    func() error { return (&Upgrade{Store: s}).Run(t.Context()) },
		"Back":   func() error { _, err := (&Upgrade{Store: s}).TakeBack(t.Context()); return err },
	} {
		require.Equal(t, domain.NewerFormat, domain.KindOf(call()), "%s: %v", name, call())
	}
}

func TestADamagedDocument_IsReported(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(2)
	r.patchDocument("/level", 0)
	_, err := Open(t.Context(), r.account.Connect(), optionsUpTo(2))
	require.Equal(t, domain.Damaged, domain.KindOf(err))
}

// patchDocument changes a member of the level document without the package under test.
func (r *rig) patchDocument(path string, value any) {
	c, err := r.account.Connect().Container(containerName)
	require.NoError(r, err)
	var ops azcosmos.PatchOperations
	ops.AppendSet(path, value)
	_, err = c.PatchItem(r.Context(), azcosmos.NewPartitionKeyString(documentKey), documentID, ops, nil)
	require.NoError(r, err)
}

func TestAnUpgrade_RaisesTheLevelOnceAllNodesKnowIt(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		old, endOld := r.join(r.open(optionsUpTo(1)), "old")
		s := r.open(optionsUpTo(3))
		one, endOne := r.join(s, "one")
		_, endTwo := r.join(s, "two")
		var reported []string
		u := &Upgrade{Store: s, By: "operator", Report: func(text string) { reported = append(reported, text) }}

		err := u.Run(r.Context())
		older, isOlder := errors.AsType[*OlderNodesError](err)
		require.True(t, isOlder, "%v", err)
		require.Equal(t, "old", older.Nodes[0].Host)
		require.ErrorContains(t, err, "node old of version v1 knows level 1")
		require.Equal(t, 1, r.status(s).Level)
		require.Zero(t, r.status(s).Announced)

		require.NoError(t, endOld())
		old.Leave(r.Context())
		reported = nil
		require.NoError(t, u.Run(r.Context()))
		require.Equal(t, []string{"level 2 is announced", "the store has level 2", "level 3 is announced", "the store has level 3"}, reported)
		r.passTime(beatEvery) // each node beats once and reads the level
		require.Equal(t, 3, one.Status().Level)

		st := r.status(s)
		require.Equal(t, 3, st.Level)
		require.Zero(t, st.Announced)
		require.Len(t, st.Nodes, 2)
		var history []string
		for _, c := range st.History {
			history = append(history, fmt.Sprint(c.What, " ", c.Level, " ", c.Version, " ", c.By))
		}
		require.Equal(t, []string{"created 1 v1 ", "announced 2 v3 operator", "activated 2 v3 operator", "announced 3 v3 operator", "activated 3 v3 operator"}, history)
		require.NoError(t, u.Run(r.Context()), "nothing to do")
		require.NoError(t, errors.Join(endOne(), endTwo()))
	})
}

func TestAnUpgrade_RemovesAnOlderNodeThatHasDied(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		_, err := r.open(optionsUpTo(1)).Join(r.Context(), "dead") // the node never beats
		require.NoError(t, err)
		s := r.open(optionsUpTo(2))
		began := time.Now()
		require.NoError(t, (&Upgrade{Store: s}).Run(r.Context()))
		require.GreaterOrEqual(t, time.Since(began), deadAfter)
		require.Equal(t, 2, r.status(s).Level)
		require.Empty(t, r.status(s).Nodes)
	})
}

func TestAnUpgradeThatUsesTheStoreAlone_WaitsForNoNode(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		_, err := r.open(optionsUpTo(1)).Join(r.Context(), "dead")
		require.NoError(t, err)
		s, began := r.open(optionsUpTo(2)), time.Now()
		require.NoError(t, (&Upgrade{Store: s, Alone: true}).Run(r.Context()))
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, 2, r.status(s).Level)
	})
}

func TestAnUpgradeThatIsInterrupted_HasChangedNothing(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		_, err := r.open(optionsUpTo(1)).Join(r.Context(), "dead")
		require.NoError(t, err)
		s := r.open(optionsUpTo(2))
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		require.ErrorContains(t, (&Upgrade{Store: s}).Run(ctx), "the level has not changed")
		require.Equal(t, Status{Level: 1, Highest: 2}, Status{Level: r.status(s).Level, Announced: r.status(s).Announced, Highest: 2})
	})
}

// A node of an older version is paused, and an upgrade removes it as dead. When the node continues, its
// next beat detects the higher level, and the node ends.
func TestANodeThatWasTakenForDead_EndsWhenItContinues(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		paused, err := r.open(optionsUpTo(1)).Join(r.Context(), "paused")
		require.NoError(t, err)
		s := r.open(optionsUpTo(2))
		require.NoError(t, (&Upgrade{Store: s}).Run(r.Context()))
		err = paused.Run(r.Context())
		require.Equal(t, domain.NewerFormat, domain.KindOf(err))
		require.ErrorContains(t, err, "the store has level 2, and this version knows levels up to 1: use version v2 or a newer one")
		require.Empty(t, r.status(s).Nodes)
	})
}

func TestANodeThatWasTakenForDead_JoinsAgain(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		s := r.open(optionsUpTo(1))
		other, err := s.Join(r.Context(), "paused")
		require.NoError(t, err)
		m, end := r.join(s, "other")
		r.passTime(forgetAfter + 2*beatEvery)
		require.Len(t, r.status(s).Nodes, 1, "a node forgets those that have shown no beat for long")
		require.NoError(t, end())
		m.Leave(r.Context())
		require.NoError(t, other.storeBeat(r.Context()))
		require.Equal(t, "paused", r.status(s).Nodes[0].Host)
	})
}

// A node of an older version joins after the upgrade has read the nodes, and before the upgrade
// announces the level. The upgrade detects the node.
func TestANodeThatJoinsBeforeTheWrite_IsSeen(t *testing.T) {
	inVirtualTime(t, func(r *rig) {
		r.openAtLevel(1)
		old := r.open(optionsUpTo(1))
		s, line := r.openBy(optionsUpTo(2))
		var end func() error
		beforeRequest(line, 3, func() { _, end = r.join(old, "old") }) // the third request of the upgrade is the announcement
		err := (&Upgrade{Store: s}).Run(r.Context())
		_, isOlder := errors.AsType[*OlderNodesError](err)
		require.True(t, isOlder, "%v", err)
		require.Equal(t, 1, r.status(s).Level)
		require.NoError(t, end())
	})
}

// The upgrade crashes before or after one of its requests. Then another upgrade continues it, or the
// announcement is taken back. Until the level is active, the previous version can open the store again.
func TestAnUpgradeThatWasKilled_IsContinuedOrTakenBack(t *testing.T) {
	var states []string
	for n := 1; ; n++ {
		fired := 0
		for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
			for _, back := range []bool{false, true} {
				r := newRig(t)
				r.openAtLevel(1)
				opts := optionsUpTo(2)
				opts.Retries = 2
				killed, line := r.openBy(opts)
				line.CrashAt(n, fault)
				_ = (&Upgrade{Store: killed}).Run(t.Context())
				fired += line.Fired()
				s := r.open(optionsUpTo(2))
				st := r.status(s)
				states = append(states, fmt.Sprint("level ", st.Level, ", announced ", st.Announced))
				if back {
					isDone, err := (&Upgrade{Store: s}).TakeBack(t.Context())
					require.NoError(t, err)
					require.Equal(t, st.Announced != 0, isDone)
					require.Equal(t, st.Level, r.status(s).Level, "an active level is not lowered")
					_, err = Open(t.Context(), r.account.Connect(), optionsUpTo(1))
					require.Equal(t, st.Level == 1, err == nil, "%v", err)
				}
				require.NoError(t, (&Upgrade{Store: s}).Run(t.Context()))
				require.Equal(t, 2, r.status(s).Level)
				require.Zero(t, r.status(s).Announced)
			}
		}
		if fired == 0 {
			break
		}
	}
	require.Subset(t, states, []string{"level 1, announced 0", "level 1, announced 2", "level 2, announced 0"})
}

func TestAnAnnouncedLevel_KeepsOlderNodesOutUntilItIsTakenBack(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	old := r.open(optionsUpTo(1))
	u := &Upgrade{Store: r.open(optionsUpTo(2))}
	_, err := u.announceLevel(t.Context(), 2)
	require.NoError(t, err)
	_, err = old.Join(t.Context(), "old")
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	require.ErrorContains(t, err, "an upgrade of the store to level 2 has begun, and this version knows levels up to 1: use version v2 or a newer one, or take the upgrade back with messagehub upgrade --back of that version")
	isDone, err := u.TakeBack(t.Context())
	require.NoError(t, err)
	require.True(t, isDone)
	_, err = old.Join(t.Context(), "old")
	require.NoError(t, err)
}

func TestTwoUpgradesAtOnce_RaiseTheLevelOnce(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	results := make(chan error)
	for range 4 {
		u := &Upgrade{Store: r.open(optionsUpTo(3))}
		go func() { results <- u.Run(t.Context()) }()
	}
	for range 4 {
		require.NoError(t, <-results)
	}
	st := r.status(r.open(optionsUpTo(3)))
	require.Equal(t, 3, st.Level)
	require.Len(t, st.History, 5)
}

func TestAnUpgradeThatWasTakenBackDuringTheCall_ReportsIt(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	other := &Upgrade{Store: r.open(optionsUpTo(2))}
	s, line := r.openBy(optionsUpTo(2))
	beforeRequest(line, 5, func() { // the third request is the announcement, the fifth the activation
		isDone, err := other.TakeBack(t.Context())
		require.NoError(t, err)
		require.True(t, isDone)
	})
	require.ErrorContains(t, (&Upgrade{Store: s}).Run(t.Context()), "another operator has taken the upgrade to level 2 back")
	require.Equal(t, 1, r.status(s).Level)
}

// newRewritingTable returns levels, the last of which has a step with three parts.
func newRewritingTable(parts *[]string) Table {
	next := map[string]string{"": "b", "b": "c", "c": ""}
	return append(levels[:1:1], Level{Since: "v2", Steps: []Step{
		{Name: "first", Run: func(_ context.Context, position string) (string, error) {
			*parts = append(*parts, "first "+position)
			return next[position], nil
		}},
		{Name: "second", Run: func(context.Context, string) (string, error) {
			*parts = append(*parts, "second")
			return "", nil
		}},
	}})
}

func TestSteps_ContinueWhereAnUpgradeWasKilled(t *testing.T) {
	for n := 1; ; n++ {
		r := newRig(t)
		r.openAtLevel(1)
		var parts []string
		opts := Options{Table: newRewritingTable(&parts), Version: "v2"}
		opts.Retries = 2
		killed, line := r.openBy(opts)
		line.CrashAt(n, faulty.RequestLost)
		_ = (&Upgrade{Store: killed}).Run(t.Context())
		s := r.open(opts)
		require.NoError(t, (&Upgrade{Store: s}).Run(t.Context()))
		require.Empty(t, r.status(s).Step)
		require.Equal(t, []string{"first ", "first b", "first c", "second"}, slices.Compact(slices.Clone(parts)))
		require.LessOrEqual(t, len(parts), 5, "one part may run twice")
		if line.Fired() == 0 {
			break
		}
	}
}

func TestAStepThatFails_IsReportedAndContinuedLater(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	isBroken := true
	opts := Options{Version: "v2", Table: append(levels[:1:1], Level{Steps: []Step{{Name: "rewrite", Run: func(context.Context, string) (string, error) {
		if isBroken {
			return "", errors.New("the account does not answer")
		}
		return "", nil
	}}}})}
	u := &Upgrade{Store: r.open(opts)}
	require.EqualError(t, u.Run(t.Context()), "rewrite: the account does not answer; run the command again to continue")
	st := r.status(u.Store)
	require.Equal(t, []any{2, "rewrite"}, []any{st.Level, st.Step})
	isBroken = false
	require.NoError(t, u.Run(t.Context()))
	require.Empty(t, r.status(u.Store).Step)
}

func TestAStepThatIsNotKnown_IsLeftToItsVersion(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	r.patchDocument("/step", map[string]string{"name": "of another build"})
	err := (&Upgrade{Store: r.open(optionsUpTo(1))}).Run(t.Context())
	require.Equal(t, domain.NewerFormat, domain.KindOf(err))
	require.ErrorContains(t, err, `level 1 has the step "of another build", which this version does not know`)
}

func TestEveryWrite_KeepsMembersThatItDoesNotKnow(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	old := r.open(optionsUpTo(1))
	m, err := old.Join(t.Context(), "old")
	require.NoError(t, err)
	r.patchDocument("/colour", "blue")
	r.patchDocument("/nodes/"+m.id+"/colour", "green")
	require.NoError(t, m.storeBeat(t.Context()))
	s := r.open(optionsUpTo(2))
	_, err = s.Join(t.Context(), "new")
	require.NoError(t, err)
	d, err := s.ensureDocument(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `{"colour":"blue"}`, string(d.Unknown))
	require.JSONEq(t, `{"colour":"green"}`, string(d.Nodes[m.id].Unknown))
	m.Leave(t.Context())
	require.NoError(t, (&Upgrade{Store: s}).Run(t.Context()))
	d, err = s.ensureDocument(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `{"colour":"blue"}`, string(d.Unknown))
}

func TestARequestThatFails_IsRepeatedAndItsEffectIsTheSame(t *testing.T) {
	for _, fault := range append(faulty.CommonFaults(), faulty.Truncated, faulty.Failed, faulty.FailedAfter) {
		for n := 1; ; n++ {
			r := newRig(t)
			r.openAtLevel(1)
			s, line := r.openBy(optionsUpTo(2))
			line.BreakOne(n, fault)
			m, err := s.Join(t.Context(), "a")
			require.NoError(t, err)
			require.NoError(t, m.storeBeat(t.Context()))
			require.NoError(t, (&Upgrade{Store: s}).Run(t.Context()))
			m.Leave(t.Context())
			fired := line.Fired()
			line.Break(nil)
			st := r.status(s)
			require.Equal(t, 2, st.Level)
			require.Len(t, st.History, 3, "%s at request %d", fault, n)
			require.Empty(t, st.Nodes)
			if fired == 0 {
				break
			}
		}
	}
}

func TestTheNodesAndTheHistory_AreLimited(t *testing.T) {
	r := newRig(t)
	r.openAtLevel(1)
	s := r.open(optionsUpTo(2))
	d, err := s.ensureDocument(t.Context())
	require.NoError(t, err)
	nodes, history := make(map[string]storedNode), make([]Change, maxHistory)
	for i := range maxNodes {
		nodes[fmt.Sprint(i)] = storedNode{Version: "v2", Level: 2, Beat: int64(10 + i)}
	}
	for i := range history {
		history[i] = s.historyEntry(created, 1, fmt.Sprint(i))
	}
	r.patchDocument("/nodes", nodes)
	r.patchDocument("/history", history)
	_, err = s.Join(t.Context(), "new")
	require.NoError(t, err)
	st := r.status(s)
	require.Len(t, st.Nodes, maxNodes)
	for _, n := range st.Nodes {
		require.NotEqual(t, "0", n.ID, "the one with the fewest beats was removed")
	}
	require.NoError(t, (&Upgrade{Store: s}).Run(t.Context()))
	st = r.status(s)
	require.Len(t, st.History, maxHistory)
	require.Equal(t, "2", st.History[0].By)
	require.Equal(t, 2, d.Level+1)
}

func TestARemovedDocument_IsCreatedByTheNextBeat(t *testing.T) {
	r := newRig(t)
	opts := optionsUpTo(2)
	s := r.open(opts)
	s.opts.IsUsed = isUsed
	m, err := s.Join(t.Context(), "a")
	require.NoError(t, err)
	c := s.client.Begin("test")
	require.NoError(t, c.DeleteIfExists(t.Context(), s.catalog, documentKey, documentID))
	require.NoError(t, m.storeBeat(t.Context()))
	st := r.status(s)
	require.Equal(t, 1, st.Level, "which every version may write")
	require.Len(t, st.Nodes, 1)
}

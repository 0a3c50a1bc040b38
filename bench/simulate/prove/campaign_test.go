package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/record"
)

// newCampaign returns a campaign of the fake simulation f, with its state in a temporary folder.
func newCampaign(t *testing.T, f fake) *proofCampaign {
	t.Helper()
	text, err := json.Marshal(f)
	require.NoError(t, err)
	t.Setenv(fakeSimulation, string(text))
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	p := &simulationProcess{command: []string{self}, folder: folder}
	c := &proofCampaign{
		statePath: filepath.Join(folder, "campaign.json"), savedPath: filepath.Join(folder, "testdata", "seeds.txt"),
		commit: "c1", run: p.runPiece, workers: 2, failures: 20, now: time.Now,
		progress: &progressLine{to: &bytes.Buffer{}},
	}
	resumeState(t, c, "c1")
	return c
}

// resumeState replaces the state of c by the state that a new process would load if the checked-out
// commit were commit.
func resumeState(t *testing.T, c *proofCampaign, commit string) {
	t.Helper()
	s, err := resumeOrNew(c.statePath, testedTree{Commit: commit}, false)
	require.NoError(t, err)
	s.beginRun(0, "prove")
	c.state, c.commit, c.failed, c.isInterrupted = s, commit, nil, false
}

func tenSeeds() flags { return flags{seeds: 10, piece: 3} }

func TestCampaign_RunsEverySeedOnce(t *testing.T) {
	c := newCampaign(t, fake{Steps: 100})
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	require.NoError(t, c.verdictError(flags{}))
	s, err := loadState(c.statePath)
	require.NoError(t, err)
	require.Equal(t, spans{{0, 10}}, s.Seeds)
	require.EqualValues(t, 1000, s.Steps)
	require.EqualValues(t, 100, s.Faulted)
	require.EqualValues(t, 10, s.Histories)
	require.Equal(t, map[string]int64{"own 409": 20, "own 412": 0}, s.Coverage)
	require.Equal(t, []string{"own 412", "own 409"}, s.rarestStates())
	require.Empty(t, c.planPieces(nil, tenSeeds()))
	require.ErrorContains(t, c.verdictError(flags{rare: 20}), "reached 0 times, want 20: own 412")
}

func TestCampaign_SavesFailedSeedsAndFails(t *testing.T) {
	c := newCampaign(t, fake{Fails: []uint64{4}})
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	want := []failure{{4, "c1", "an event was lost", ""}}
	require.Equal(t, want, c.state.Failed)
	require.EqualError(t, c.verdictError(flags{}), "seed 4 fails: an event was lost")
	require.EqualValues(t, 10, c.state.Seeds.countSeeds())

	text, err := os.ReadFile(c.savedPath)
	require.NoError(t, err)
	require.Equal(t, seedsHeader+"4 c1 an event was lost\n", string(text))
	seeds, err := readSeeds(c.savedPath)
	require.NoError(t, err)
	require.Equal(t, []savedSeed{{seed: 4}}, seeds)

	resumeState(t, c, "c1")
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(seeds, tenSeeds())))
	require.Equal(t, want, c.state.Failed, "once for each commit")
	require.EqualValues(t, 10, c.state.Histories, "a saved seed is not counted again")
	again, err := os.ReadFile(c.savedPath)
	require.NoError(t, err)
	require.Equal(t, text, again)

	t.Setenv(fakeSimulation, `{}`)
	resumeState(t, c, "c2")
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(seeds, tenSeeds())))
	require.NoError(t, c.verdictError(flags{}))
}

func TestCampaign_MarksSeedsAsRepairedOnLaterCommits(t *testing.T) {
	c := newCampaign(t, fake{Fails: []uint64{4}})
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	again := func(commit string) {
		c.commit, c.failed = commit, nil
		require.NoError(t, c.runPieces(t.Context(), c.planPieces([]savedSeed{{seed: 4}}, tenSeeds())))
	}
	t.Setenv(fakeSimulation, `{}`)
	again("c1")
	require.Equal(t, 1, c.state.countFailing(), "the commit is the one on which the seed failed")
	again("c2")
	require.Zero(t, c.state.countFailing())
	again("c3")
	require.Equal(t, []failure{{4, "c1", "an event was lost", "c2"}}, c.state.Failed)
	require.NoError(t, c.verdictError(flags{}))
}

func TestCampaign_FindsASeedThatKillsItsProcess(t *testing.T) {
	c := newCampaign(t, fake{Dies: []uint64{4}})
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	require.Equal(t, []failure{{4, "c1", "panic: all is lost", ""}}, c.state.Failed)
	require.Equal(t, spans{{0, 10}}, c.state.Seeds)
	require.EqualValues(t, 9, c.state.Histories)
}

func TestCampaign_CountsSecondRunsSeparately(t *testing.T) {
	c := newCampaign(t, fake{Differs: []uint64{1, 8}, Steps: 10})
	f := tenSeeds()
	f.twice = 5
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, f)))
	require.Equal(t, spans{{0, 5}}, c.state.Twice)
	require.Equal(t, []uint64{1}, c.state.Differing)
	require.EqualValues(t, 100, c.state.Steps)
	require.Equal(t, []failure{{1, "c1", "two runs differ: step 3", ""}}, c.state.Failed)
}

func TestCampaign_ResumesAfterAnInterruption(t *testing.T) {
	c := newCampaign(t, fake{Steps: 1})
	ctx, cancel := context.WithCancel(t.Context())
	run := c.run
	c.workers = 1
	c.run = func(ctx context.Context, p seedPiece) (totals, error) {
		if p.From == 6 {
			cancel()
		}
		return run(ctx, p)
	}
	require.NoError(t, c.runPieces(ctx, c.planPieces(nil, tenSeeds())))
	require.ErrorContains(t, c.verdictError(flags{}), "not finished")
	require.Equal(t, spans{{0, 6}}, c.state.Seeds)

	c.run = run
	resumeState(t, c, "c1")
	rest := c.planPieces(nil, tenSeeds())
	require.Equal(t, []seedPiece{{span{6, 3}, fresh, ""}, {span{9, 1}, fresh, ""}}, rest)
	require.NoError(t, c.runPieces(t.Context(), rest))
	require.NoError(t, c.verdictError(flags{}))
	require.EqualValues(t, 10, c.state.Steps)
}

func TestCampaign_EndsAfterItsDuration(t *testing.T) {
	c := newCampaign(t, fake{})
	c.workers = 1
	var seconds atomic.Int64
	c.now = func() time.Time { return time.Unix(seconds.Load(), 0) }
	c.until = c.now().Add(time.Minute)
	run := c.run
	c.run = func(ctx context.Context, p seedPiece) (totals, error) {
		if p.From == 3 {
			seconds.Add(3600)
		}
		return run(ctx, p)
	}
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	require.ErrorContains(t, c.verdictError(flags{}), "not finished")
	require.Equal(t, spans{{0, 6}}, c.state.Seeds, "the piece that was begun is finished")
	require.InDelta(t, 3600, c.state.Wall, 0.1)
}

func TestCampaign_StopsAfterTooManyFailures(t *testing.T) {
	c := newCampaign(t, fake{Fails: []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}})
	c.workers, c.failures = 1, 5
	require.NoError(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	require.Len(t, c.state.Failed, 6)
	require.ErrorContains(t, c.verdictError(flags{}), "not finished")
}

func TestCampaign_FailsIfAProcessCannotStart(t *testing.T) {
	c := newCampaign(t, fake{})
	c.workers = 1
	c.run = (&simulationProcess{command: []string{filepath.Join(t.TempDir(), "none")}}).runPiece
	require.Error(t, c.runPieces(t.Context(), c.planPieces(nil, tenSeeds())))
	require.Empty(t, c.state.Failed)
}

func TestCampaign_BeginsAgainOnAnotherCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "campaign.json")
	old := &campaignState{Origins: []testedTree{{Commit: "c1"}}, Steps: 5}
	require.NoError(t, old.saveTo(path))
	for _, tc := range []struct {
		name       string
		here       string
		canCombine bool
		steps      int64
		of         []testedTree
	}{
		{"the same", "c1", false, 5, []testedTree{{Commit: "c1"}}},
		{"another, put together", "c2", true, 5, []testedTree{{Commit: "c1"}, {Commit: "c2"}}},
		{"another", "c2", false, 0, []testedTree{{Commit: "c2"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := resumeOrNew(path, testedTree{Commit: tc.here}, tc.canCombine)
			require.NoError(t, err)
			require.Equal(t, tc.steps, s.Steps)
			require.Equal(t, tc.of, s.Origins)
		})
	}
	aside, err := loadState(path + ".before")
	require.NoError(t, err)
	require.EqualValues(t, 5, aside.Steps)

	changed := testedTree{Commit: "c1" + record.Changes}
	require.NoError(t, (&campaignState{Origins: []testedTree{changed}, Steps: 5}).saveTo(path))
	s, err := resumeOrNew(path, changed, false)
	require.NoError(t, err)
	require.Zero(t, s.Steps, "two trees with changes are never known to be the same")
}

func TestSpans_ReturnMissingSeeds(t *testing.T) {
	var s spans
	for _, each := range []span{{10, 5}, {0, 5}, {20, 5}, {5, 3}, {12, 4}} {
		s = s.withSpan(each)
	}
	require.Equal(t, spans{{0, 8}, {10, 6}, {20, 5}}, s)
	require.EqualValues(t, 19, s.countSeeds())
	require.Equal(t, []span{{8, 2}, {16, 3}, {19, 1}, {25, 3}, {28, 2}}, s.missingFrom(span{0, 30}, 3))
	require.Equal(t, []span{{16, 2}}, s.missingFrom(span{14, 4}, 3))
	require.True(t, s.hasAll(span{11, 4}))
	require.False(t, s.hasAll(span{7, 2}))
	require.Empty(t, s.missingFrom(span{3, 0}, 3))
}

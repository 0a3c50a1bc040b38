package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failing is an environment variable that lists seeds. If it is set, the test binary acts as a simulation in which the
// listed seeds fail.
const failing = "MUTANTS_TEST_FAILING"

func TestMain(m *testing.M) {
	if seeds, is := os.LookupEnv(failing); is {
		os.Exit(runStandIn(strings.Fields(seeds)))
	}
	os.Exit(m.Run())
}

func runStandIn(failing []string) int {
	from := flag.Int("simulate.from", 0, "")
	seeds := flag.Int("simulate.seeds", 0, "")
	flag.Parse()
	var failed []string
	for seed := *from; seed < *from+*seeds; seed++ {
		if slices.Contains(failing, "~"+strconv.Itoa(seed)) { // the process fails without naming a seed
			fmt.Printf("panic: in seed %d\n", seed)
			return 2
		}
		if slices.Contains(failing, strconv.Itoa(seed)) {
			failed = append(failed, strconv.Itoa(seed))
		}
	}
	for _, seed := range failed {
		fmt.Printf("    --- FAIL: TestSeeds/%s (0.1s)\n        simulate_test.go:1: seed %s: H1: seed %s has lost an event\n", seed, seed, seed)
	}
	return len(failed)
}

func newSearch(t *testing.T, upTo int, seeds string) *seedSearch {
	t.Helper()
	t.Setenv(failing, seeds)
	binary, err := os.Executable()
	require.NoError(t, err)
	memory, err := openMemory(filepath.Join(t.TempDir(), "bin", "state.json"))
	require.NoError(t, err)
	c := &mutantCampaign{processes: 3, patience: time.Minute, root: moduleRootOf(t), dir: t.TempDir(), memory: memory}
	return &seedSearch{mutantCampaign: c, binary: binary, name: "stand-in", upTo: upTo, verdict: knownVerdict{Mutant: "m", Binary: "b"}}
}

func TestSearch_FindsTheFirstKillingSeed(t *testing.T) {
	for seeds, want := range map[string]knownVerdict{
		"0":        {Seeds: 1, By: "H1: seed 0 has lost an event"},
		"30 17 31": {Seeds: 18, By: "H1: seed 17 has lost an event"},
		"~21 25":   {Seeds: 22, By: "panic: in seed 21"},
	} {
		s := newSearch(t, 40, seeds)
		v, err := s.runSearch(t.Context())
		require.NoError(t, err)
		require.True(t, v.Killed)
		require.Equal(t, want.Seeds, v.Seeds)
		require.Equal(t, want.By, v.By)
		require.Equal(t, v, s.memory.verdictOf("m", "b"))
	}
}

func TestSearch_ReportsSurvivors(t *testing.T) {
	s := newSearch(t, 20, "20 21")
	v, err := s.runSearch(t.Context())
	require.NoError(t, err)
	require.False(t, v.Killed)
	require.Equal(t, 20, v.Survived)
	require.ErrorContains(t, survivorError([]knownVerdict{v}), "1 mutants survive: m")
}

func TestSearch_ResumesAfterAnInterruption(t *testing.T) {
	s := newSearch(t, 10, "5 12")
	s.verdict.Survived, s.upTo = 6, 20 // an earlier run has tried the seeds up to 5
	v, err := s.runSearch(t.Context())
	require.NoError(t, err)
	require.Equal(t, 13, v.Seeds)

	again, err := openMemory(s.memory.file)
	require.NoError(t, err)
	require.Equal(t, v, again.verdictOf("m", "b"))
	require.Zero(t, again.verdictOf("m", "changed since").Survived, "another binary is another mutant")
}

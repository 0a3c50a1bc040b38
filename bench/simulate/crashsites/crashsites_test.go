//go:build unix

package crashsites

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRandomCrashSites_LoseNothing kills hubs at a few random crash sites in each setup. MESSAGEHUB_CRASH_SITES_SEED
// repeats the choice.
func TestRandomCrashSites_LoseNothing(t *testing.T) {
	seed := uint64(numberSetting(t, "MESSAGEHUB_CRASH_SITES_SEED", time.Now().UnixNano()))
	for _, part := range []struct {
		place hubSetup
		stage stage
		sites int
	}{{embedded, living, 6}, {apart, living, 3}, {embedded, sweeping, 2}, {embedded, tailing, 2}, {embedded, pushing, 2}, {apart, pushing, 1}, {embedded, watching, 2}, {apart, watching, 1}, {embedded, storing, 4}, {embedded, marking, 1}, {embedded, crawling, 2}, {embedded, patching, 1}, {embedded, forgetting, 1}, {embedded, relaying, 2}} {
		t.Run(fmt.Sprintf("%s %s", part.place, part.stage), func(t *testing.T) {
			t.Parallel()
			some := crashSites(part.place, part.stage)
			shuffleSites(some, seed)
			run := newCrashRun(part.place, part.stage, seed, t.TempDir(), buildProgram(t))
			run.patience = 3 * time.Minute // a longer limit, because in this test a missed step is a failure
			r := runSites(t, run, some[:part.sites])
			t.Logf("seed %d: %d events in %d bundles, %d hints repaired, killed at %v", seed, r.Events, r.Bundles, r.Mended, r.Kills)
			require.Empty(t, r.Failed, "seed %d", seed)
			require.Empty(t, r.Missed, "seed %d", seed)
		})
	}
}

// TestEveryCrashSite kills hubs at every crash site, MESSAGEHUB_CRASH_SITES times at each. It resumes from the file
// MESSAGEHUB_CRASH_SITES_FILE, starts no new run after MESSAGEHUB_CRASH_SITES_SECONDS, and writes RESULTS.md. Without
// these variables the test does nothing.
func TestEveryCrashSite(t *testing.T) {
	target := numberSetting(t, "MESSAGEHUB_CRASH_SITES", 0)
	file := os.Getenv("MESSAGEHUB_CRASH_SITES_FILE")
	if target == 0 || file == "" {
		return
	}
	c, err := openCampaign(file, int(target))
	require.NoError(t, err)
	deadline := time.Now().Add(time.Duration(numberSetting(t, "MESSAGEHUB_CRASH_SITES_SECONDS", 1_000_000)) * time.Second)
	t.Cleanup(func() { require.NoError(t, os.WriteFile("RESULTS.md", []byte(c.formatReport()), 0o600)) })
	began := time.Now()
	n := 0
	for _, s := range stages {
		n += len(crashSites(embedded, s)) + len(crashSites(apart, s))
	}
	fmt.Printf("commit %s: %d crash sites, %d times each\n", commit(), n, target)
	for _, p := range []hubSetup{embedded, apart} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			for _, s := range stages {
				for {
					wanted := c.wantedSites(p, s)
					if len(wanted) == 0 {
						break
					}
					if time.Now().After(deadline) {
						fmt.Printf("%s: the time has passed; run it again to continue\n", p)
						return
					}
					seed := uint64(time.Now().UnixNano())
					shuffleSites(wanted, seed)
					folder, err := os.MkdirTemp("", "messagehub-crashsites-")
					require.NoError(t, err)
					r := runSites(t, newCrashRun(p, s, seed, folder, buildProgram(t)), wanted)
					require.NoError(t, os.RemoveAll(folder))
					done, of, err := c.addRecord(r)
					require.NoError(t, err)
					fmt.Printf("%s, %s, seed %d: %d crash sites in %.1f s, missed %d; kills so far %d of %d, %s\n",
						p, s, seed, len(wanted), r.Seconds, len(r.Missed), done, of, time.Since(began).Round(time.Second))
					require.Empty(t, r.Failed, "seed %d", seed)
					require.Less(t, len(r.Missed), len(wanted), "seed %d: the hub reached no crash site of %v", seed, wanted)
				}
			}
		})
	}
}

// runSites runs a crashRun, and returns its record.
func runSites(t *testing.T, run *crashRun, some []crashSite) *runRecord {
	t.Helper()
	began := time.Now()
	err := run.killAtSites(t.Context(), some)
	r := &runRecord{
		Commit: commit(), Place: run.place, Stage: run.stage, Seed: run.seed, Mended: run.repaired, Seconds: time.Since(began).Seconds(),
	}
	r.Events, r.Bundles = run.ledger.Size()
	for _, c := range crashSites(run.place, run.stage) {
		if n := run.kills[c]; n > 0 {
			r.Kills = append(r.Kills, killRecord{string(c.Step), c.When, n})
		}
	}
	for _, c := range run.missed {
		r.Missed = append(r.Missed, c.String())
	}
	if err != nil {
		r.Failed = err.Error()
	}
	for c, d := range run.waited {
		if d > 10*time.Second {
			t.Logf("it took %s to reach %s", d.Round(time.Millisecond), c)
		}
	}
	return r
}

func shuffleSites(some []crashSite, seed uint64) {
	rand.New(rand.NewPCG(seed, 3)).Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
}

func numberSetting(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	text := strings.TrimSpace(os.Getenv(variable))
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}

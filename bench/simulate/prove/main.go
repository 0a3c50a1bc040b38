// Prove runs the simulation over many seeds and records the results.
//
//	go run ./bench/simulate/prove -seeds 50000 -twice 1000 -rare 100
//
// Prove builds the test binary of bench/simulate once and divides the seeds into pieces. It runs as many processes as
// there are processors, and each process runs one piece at a time. The result of a piece is added to the state
// (campaign.json) when the piece ends, so an interrupted campaign can resume. After Ctrl-C, prove waits for the
// processes to end and discards their pieces; when -duration has passed, prove lets the running pieces finish.
//
// With a different commit, or with uncommitted changes, a new campaign begins and the old state is renamed. The flag
// -continue combines the figures of the commits instead. Seeds that failed on earlier commits are then run again, and
// are marked as repaired if they do not fail.
//
// A seed that fails is added to testdata/seeds.txt, and the exit code is 1. Every test of the simulation runs the
// seeds of that file. If a process dies without reporting the failed seed, its seeds are run again one by one. At the
// end, and with -report, the state is written to RESULTS.md.
//
// With -twice N, the first N seeds are run twice more, to compare the traces. That pass has its own count; saved seeds
// are not counted.
//
// # What it requires of the simulation
//
// The simulation must have a test TestSeeds with the flags -simulate.from, -simulate.seeds and -simulate.twice; with
// -simulate.twice, the test compares two runs of each seed. TestSeeds writes one line of JSON (see totals) to the file
// named by -simulate.out. The line contains a count for every rare state, 0 if the state was not reached. For a seed
// that fails, TestSeeds prints "seed N: " and the violation.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/bench/record"
	"github.com/messagehub/messagehub/bench/simulate/seeded"
)

type flags struct {
	from, seeds, twice, piece       uint64
	workers, rare, failures         int
	duration                        time.Duration
	fresh, canCombine, report, race bool
	state, out, saved, cover        string
	replay, drop                    string
}

func parseFlags(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("prove", flag.ContinueOnError)
	set.Uint64Var(&f.from, "from", 0, "first seed")
	set.Uint64Var(&f.seeds, "seeds", 500, "number of seeds")
	set.BoolVar(&f.fresh, "fresh", false, "start at a random seed instead of -from")
	set.Uint64Var(&f.twice, "twice", 0, "number of seeds to run twice more, to compare the traces")
	set.Uint64Var(&f.piece, "piece", 50, "number of seeds that a process runs at a time")
	set.IntVar(&f.workers, "workers", runtime.NumCPU(), "number of processes")
	set.IntVar(&f.rare, "rare", 0, "required count of each rare state")
	set.IntVar(&f.failures, "failures", 20, "stop after this number of failed seeds")
	set.DurationVar(&f.duration, "duration", 0, "start no piece after this time; 0: no limit")
	set.BoolVar(&f.canCombine, "continue", false, "resume although the commit has changed")
	set.BoolVar(&f.report, "report", false, "run nothing, write the results so far")
	set.BoolVar(&f.race, "race", false, "run with the race detector")
	set.StringVar(&f.state, "state", "bench/simulate/campaign.json", "file with the state")
	set.StringVar(&f.out, "out", "bench/simulate/RESULTS.md", "file for the results; empty: none")
	set.StringVar(&f.saved, "saved", "bench/simulate/testdata/seeds.txt", "file with the seeds that failed before; they are run first")
	set.StringVar(&f.replay, "replay", "", "run only this seed (7022), or one simulation of it (7022/mailboxes), and print the trace")
	set.StringVar(&f.drop, "drop", "", "comma-separated numbers of faults to leave out in a replay; the trace prints 3 as #3")
	set.StringVar(&f.cover, "cover", "", "folder for coverage profiles, one for each piece")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if f.piece == 0 || f.workers < 1 || set.NArg() > 0 {
		return f, errors.New("want at least one worker, one seed a piece, and no arguments after the flags")
	}
	if f.drop != "" && f.replay == "" {
		return f, errors.New("-drop needs -replay: add the seed, for example -replay 7022 -drop 3,4")
	}
	if f.fresh {
		f.from = rand.Uint64N(1 << 48)
	}
	return f, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runCommand(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "prove:", err)
		stop()
		os.Exit(1)
	}
}

func runCommand(ctx context.Context, args []string) error {
	f, err := parseFlags(args)
	if err != nil {
		return err
	}
	if f.report {
		s, err := loadState(f.state)
		if err != nil {
			return err
		}
		return s.writeReport(f.out)
	}
	if f.replay != "" {
		return replaySeed(ctx, f)
	}
	here := testedTree{Machine: record.Machine(), Go: runtime.Version(), Commit: record.Commit(ctx)}
	s, err := resumeOrNew(f.state, here, f.canCombine)
	if err != nil {
		return err
	}
	if f.fresh && s.From != nil && !s.Seeds.hasAll(span{*s.From, f.seeds}) {
		f.from = *s.From // continue with the seeds that the unfinished run has not tested
	}
	s.beginRun(f.from, "go run ./bench/simulate/prove "+strings.Join(args, " "))
	folder, err := os.MkdirTemp("", "prove")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p, err := buildSimulation(ctx, folder, f)
	if err != nil {
		return err
	}
	saved, err := readSeeds(f.saved)
	if err != nil {
		return err
	}
	c := &proofCampaign{
		state: s, statePath: f.state, savedPath: f.saved, commit: here.Commit,
		run: p.runPiece, workers: f.workers, failures: f.failures, now: time.Now,
	}
	if f.duration > 0 {
		c.until = time.Now().Add(f.duration)
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	c.tick, c.progress = ticker.C, newProgress(os.Stderr)
	err = errors.Join(c.runPieces(ctx, c.planPieces(saved, f)), s.writeReport(f.out), c.verdictError(f))
	c.progress.printLine(s.summaryLine(err == nil))
	return err
}

// replaySeed builds the simulation and runs one seed.
func replaySeed(ctx context.Context, f flags) error {
	seed, err := parseSeed(f.replay)
	if err != nil {
		return fmt.Errorf("-replay: %w", err)
	}
	folder, err := os.MkdirTemp("", "prove")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p, err := buildSimulation(ctx, folder, f)
	if err != nil {
		return err
	}
	return p.replaySeed(ctx, seed, f.drop)
}

// coveredPackages are the packages whose coverage is measured.
const coveredPackages = "./cosmos,./domain/hub,./api/servicebus"

// buildSimulation builds the test binary of the simulation.
func buildSimulation(ctx context.Context, folder string, f flags) (*simulationProcess, error) {
	binary := filepath.Join(folder, "simulate.test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}
	switch overlay, err := seeded.Overlay(ctx, folder, nil); {
	case errors.Is(err, seeded.ErrOther):
		fmt.Fprintln(os.Stderr, "prove: traces of a seed may differ:", err)
	case err != nil:
		return nil, err
	default:
		args = append(args, "-tags", seeded.Tag, "-overlay", overlay)
	}
	if f.race {
		args = append(args, "-race")
	}
	p := &simulationProcess{command: []string{binary}, dir: filepath.Join("bench", "simulate"), folder: folder}
	if f.cover != "" {
		args = append(args, "-cover", "-covermode=set", "-coverpkg="+coveredPackages)
		var err error
		if p.profiles, err = filepath.Abs(f.cover); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(p.profiles, 0o750); err != nil {
			return nil, err
		}
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "./bench/simulate")...).CombinedOutput() //nolint:gosec // flags of our own
	if err != nil {
		return nil, fmt.Errorf("build the simulation: %w\n%s", err, out)
	}
	return p, nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/seeded"
)

// A pieceKind is the reason for running a piece.
type pieceKind int

const (
	fresh pieceKind = iota // seeds that the campaign has not run
	saved                  // seeds that failed before
	twice                  // seeds that are run twice to compare their traces
)

// A seedPiece is a range of seeds that one process runs.
type seedPiece struct {
	span
	kind pieceKind
	part string // name of the only simulation to run; "" means all simulations
}

// totals are the results of a piece, which a process writes as one line of JSON.
type totals struct {
	Steps     int64            `json:"steps"`
	Faulted   int64            `json:"faulted"`
	Seconds   float64          `json:"seconds"`
	Coverage  map[string]int64 `json:"sometimes"` // includes states with the count 0
	Histories int64            `json:"histories"`
	Failed    []uint64         `json:"failed"`
	Differing []uint64         `json:"differing"` // seeds whose two runs differ

	output string
}

// errSilent reports that a process ended without writing totals.
var errSilent = errors.New("the process ended without a result")

// A simulationProcess runs the simulation.
type simulationProcess struct {
	command  []string // the test binary and its first arguments
	dir      string   // working directory of the process; "" means the current directory
	folder   string   // folder for output files
	profiles string   // folder for coverage profiles; "" means that no profiles are written
}

// runPiece runs one piece. A failed seed is not an error. If the error is errSilent, the totals contain the
// output of the process.
func (p *simulationProcess) runPiece(ctx context.Context, of seedPiece) (totals, error) {
	name := fmt.Sprintf("%d-%d-%d%s", of.kind, of.From, of.Seeds, of.part)
	out := filepath.Join(p.folder, name+".json")
	args := append(p.command[1:len(p.command):len(p.command)],
		"-test.run=^TestSeeds$", "-test.timeout=30m", "-test.count=1",
		"-simulate.from="+strconv.FormatUint(of.From, 10),
		"-simulate.seeds="+strconv.FormatUint(of.Seeds, 10),
		"-simulate.out="+out,
		"-simulate.only="+of.part,
	)
	if of.kind == twice {
		args = append(args, "-simulate.twice")
	}
	if p.profiles != "" {
		args = append(args, "-test.coverprofile="+filepath.Join(p.profiles, name+".out"))
	}
	cmd := exec.CommandContext(ctx, p.command[0], args...) //nolint:gosec // it was built here
	cmd.Dir, cmd.Env = p.dir, seeded.Environment()
	printed := &outputEnds{}
	cmd.Stdout, cmd.Stderr = printed, printed
	failed := cmd.Run()
	t := totals{output: printed.String()}
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	line, err := os.ReadFile(out)
	if err == nil {
		err = errors.Join(json.Unmarshal(line, &t), os.Remove(out))
	}
	_, ended := errors.AsType[*exec.ExitError](failed)
	switch {
	case failed != nil && !ended, failed == nil && err != nil, strings.Contains(t.output, "flag provided but not defined"):
		return t, fmt.Errorf("run the simulation: %w\n%s", errors.Join(failed, err), t.output)
	case err != nil, failed != nil && len(t.Failed)+len(t.Differing) == 0:
		return t, errors.Join(errSilent, failed)
	}
	return t, nil
}

// describeSeed returns one line that describes the failure of a seed.
func (t *totals) describeSeed(seed uint64) string {
	mark := fmt.Sprintf("seed %d: ", seed)
	var last string
	for line := range strings.Lines(t.output) {
		line = strings.TrimSpace(line)
		if _, what, ok := strings.Cut(line, mark); ok {
			return what
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// An outputEnds is a writer that retains the beginning and the end of the output.
type outputEnds struct{ begin, end bytes.Buffer }

const tailSize = 1 << 18

func (t *outputEnds) Write(b []byte) (int, error) {
	to := &t.begin
	if t.begin.Len() > tailSize {
		to = &t.end
	}
	if t.end.Len() > 2*tailSize {
		t.end.Next(t.end.Len() - tailSize)
	}
	return to.Write(b)
}

func (t *outputEnds) String() string { return t.begin.String() + t.end.String() }

// replaySeed runs one seed without the faults in drop, and prints its trace.
func (p *simulationProcess) replaySeed(ctx context.Context, of savedSeed, drop string) error {
	cmd := exec.CommandContext(ctx, p.command[0], replayArgs(of, drop)...) //nolint:gosec // it was built here
	cmd.Dir, cmd.Env = p.dir, seeded.Environment()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("seed %d: %w", of.seed, err)
	}
	return nil
}

// replayArgs returns the arguments with which the simulation runs one seed and prints its trace.
func replayArgs(of savedSeed, drop string) []string {
	return []string{
		"-test.run=^TestSeeds$", "-test.count=1",
		"-simulate.from=" + strconv.FormatUint(of.seed, 10), "-simulate.seeds=1", "-simulate.only=" + of.part,
		"-simulate.trace", "-simulate.drop=" + drop,
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A seedSearch searches for the lowest seed that kills a mutant. Concurrent processes run ranges of seeds in ascending
// order. When a seed of one range fails, the search still completes the running ranges that have lower seeds.
type seedSearch struct {
	*mutantCampaign
	binary string
	name   string // name of the mutant in progress messages
	upTo   int    // number of seeds to search

	mu       sync.Mutex
	next     int                // next seed to assign to a process
	running  map[seedRange]bool // ranges that processes are running
	verdict  knownVerdict
	began    time.Time // time at which this run of the search began
	before   float64   // duration of earlier runs in seconds
	reported time.Time // time of the last progress message
}

// A seedRange is a range of seeds.
type seedRange struct{ from, seeds int }

// reportInterval is the interval between the progress messages of a long search.
const reportInterval = 10 * time.Second

func (s *seedSearch) runSearch(ctx context.Context) (knownVerdict, error) {
	s.next, s.running = s.verdict.Survived, make(map[seedRange]bool)
	s.began, s.before, s.reported = time.Now(), s.verdict.Seconds, time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for range s.processes {
		g.Go(func() error {
			for p, ok := s.takePiece(); ok; p, ok = s.takePiece() {
				seed, why, err := s.tryPiece(ctx, p)
				if err == nil {
					err = s.notePiece(p, seed, why)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return s.verdict, err
}

// takePiece returns the next range to run. The first ranges have one seed each, because most mutants are killed early.
// Later ranges have more seeds, because starting a process takes time.
func (s *seedSearch) takePiece() (seedRange, bool) {
	const maxSize = 25
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdict.Killed || s.next >= s.upTo {
		return seedRange{}, false
	}
	p := seedRange{s.next, min(1+s.next/8, maxSize, s.upTo-s.next)}
	s.next += p.seeds
	s.running[p] = true
	return p, true
}

// notePiece records the result of range p. seed is the first failed seed in p, or -1.
func (s *seedSearch) notePiece(p seedRange, seed int, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
	v := &s.verdict
	v.Seconds = s.before + time.Since(s.began).Seconds()
	if seed >= 0 && (!v.Killed || seed < v.Seeds-1) {
		v.Killed, v.Seeds, v.By = true, seed+1, why
	}
	if v.Killed && len(s.running) > 0 {
		return nil // a seed of a lower range may still fail
	}
	v.Survived = s.next
	for other := range s.running {
		v.Survived = min(v.Survived, other.from)
	}
	if v.Killed {
		v.Survived = v.Seeds - 1
	}
	if !v.Killed && time.Since(s.reported) > reportInterval {
		s.reported = time.Now()
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, *v)
	}
	return s.memory.noteVerdict(*v)
}

// tryPiece runs the seeds of range p, and returns the first failed seed, or -1.
func (s *seedSearch) tryPiece(ctx context.Context, p seedRange) (seed int, why string, err error) {
	out, failed, err := s.runBinary(ctx, s.binary, simulation.pkg, 1,
		"-test.run", simulation.pattern, "-test.count=1",
		fmt.Sprintf("-simulate.from=%d", p.from), fmt.Sprintf("-simulate.seeds=%d", p.seeds))
	switch {
	case err != nil:
		return 0, "", err
	case !failed:
		return -1, "", nil
	case p.seeds == 1:
		return p.from, reasonOf(out), nil
	}
	if seed, ok := failedSeed(out); ok && p.from <= seed && seed < p.from+p.seeds {
		return seed, reasonOf(out), nil
	}
	// The process did not report a seed, for instance because it panicked or hung.
	for i := range p.seeds {
		if seed, why, err := s.tryPiece(ctx, seedRange{p.from + i, 1}); err != nil || seed >= 0 {
			return seed, why, err
		}
	}
	return 0, "", fmt.Errorf("%s: seeds %d to %d fail together, but none fails alone:\n%s", s.name, p.from, p.from+p.seeds-1, out)
}

var failedSubtest = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSeeds/(\d+) `)

// failedSeed returns the first failed seed in the output of a simulation; ok is false if the output names no seed.
func failedSeed(out string) (seed int, ok bool) {
	for _, m := range failedSubtest.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err == nil && (!ok || n < seed) {
			seed, ok = n, true
		}
	}
	return seed, ok
}

// sourceLocation matches the source location at the beginning of a test's message.
var sourceLocation = regexp.MustCompile(`^\S+\.go:\d+: (seed \d+: )?`)

// reasonOf returns the line with the violation in the output of a simulation.
func reasonOf(out string) string {
	reported, first := "", ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "Error:"); ok {
			return shortenLine(text)
		}
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return shortenLine(line)
		}
		if at := sourceLocation.FindString(line); at != "" {
			reported = cmp.Or(reported, line[len(at):])
		}
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			first = cmp.Or(first, line)
		}
	}
	return shortenLine(cmp.Or(reported, first))
}

// failedTest returns the first failed test in the output of tests.
func failedTest(out string) string {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	return reasonOf(out)
}

// shortenLine shortens a line for a table.
func shortenLine(line string) string {
	const limit = 160
	line = strings.ReplaceAll(strings.Join(strings.Fields(line), " "), "|", "/")
	if len(line) > limit {
		line = strings.ToValidUTF8(line[:limit], "") + "…"
	}
	return line
}

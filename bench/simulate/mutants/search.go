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

// A seedSearch looks for the first seed that kills a mutant. Seeds are handed out in their
// order, in pieces, to as many processes as may run; a piece that is being run when
// another one fails is run to its end. So what is found is the first.
type seedSearch struct {
	*mutantCampaign
	binary string
	name   string // for the reader
	upTo   int    // seeds

	mu      sync.Mutex
	next    int                // seed to be handed out
	running map[seedRange]bool // pieces that are
	verdict verdict
	began   time.Time // of this run of the search
	before  float64   // seconds of those before it
	said    time.Time // the last that was said to the reader
}

// A seedRange is a run of seeds.
type seedRange struct{ from, seeds int }

// sayEvery is how often a search that lasts says how far it is.
const sayEvery = 10 * time.Second

func (s *seedSearch) runSearch(ctx context.Context) (verdict, error) {
	s.next, s.running = s.verdict.Survived, make(map[seedRange]bool)
	s.began, s.before, s.said = time.Now(), s.verdict.Seconds, time.Now()
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

// takePiece hands out the next piece: one seed at first, for most mutants do not live long,
// and more as they do, for starting a process costs as well.
func (s *seedSearch) takePiece() (seedRange, bool) {
	const most = 25
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdict.Killed || s.next >= s.upTo {
		return seedRange{}, false
	}
	p := seedRange{s.next, min(1+s.next/8, most, s.upTo-s.next)}
	s.next += p.seeds
	s.running[p] = true
	return p, true
}

// notePiece notes what came of a piece: the seed that has failed, or -1.
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
		return nil // one of these may be sooner
	}
	v.Survived = s.next
	for other := range s.running {
		v.Survived = min(v.Survived, other.from)
	}
	if v.Killed {
		v.Survived = v.Seeds - 1
	}
	if !v.Killed && time.Since(s.said) > sayEvery {
		s.said = time.Now()
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, *v)
	}
	return s.memory.noteVerdict(*v)
}

// tryPiece runs a piece, and returns the first seed that failed, or -1.
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
	// It was too much for the process to say which: it panicked, perhaps, or hung.
	for i := range p.seeds {
		if seed, why, err := s.tryPiece(ctx, seedRange{p.from + i, 1}); err != nil || seed >= 0 {
			return seed, why, err
		}
	}
	return 0, "", fmt.Errorf("%s: seeds %d to %d fail together, and none of them alone:\n%s", s.name, p.from, p.from+p.seeds-1, out)
}

var failedSubtest = regexp.MustCompile(`(?m)^\s*--- FAIL: TestSeeds/(\d+) `)

// failedSeed finds the first seed in what a simulation of several says.
func failedSeed(out string) (seed int, ok bool) {
	for _, m := range failedSubtest.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err == nil && (!ok || n < seed) {
			seed, ok = n, true
		}
	}
	return seed, ok
}

// sourceLocation is where a line of a test comes from, which the table need not say.
var sourceLocation = regexp.MustCompile(`^\S+\.go:\d+: (seed \d+: )?`)

// reasonOf finds in what a failing simulation says the line that tells what is wrong.
func reasonOf(out string) string {
	reported, first := "", ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if said, ok := strings.CutPrefix(line, "Error:"); ok {
			return shortenLine(said)
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

// failedTest finds in what tests say the first that failed.
func failedTest(out string) string {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	return reasonOf(out)
}

// shortenLine makes a line fit into a table.
func shortenLine(line string) string {
	const most = 160
	line = strings.ReplaceAll(strings.Join(strings.Fields(line), " "), "|", "/")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

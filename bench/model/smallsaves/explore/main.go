// Command explore explores the model of package smallsaves: every scenario must be exhausted
// without a violation, every mutation must have a violation, and random walks must have none. `make
// model` writes bench/model/smallsaves/RESULTS.md with it. The exit status is 0 if every row has
// the required outcome.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/messagehub/messagehub/bench/model/smallsaves"
)

// memoryLimit is the memory limit of the Go runtime.
const memoryLimit = 3800 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runModel(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "explore:", err)
		os.Exit(1) //nolint:gocritic // ctx need not be released at the end of the process
	}
}

func runModel(ctx context.Context) error {
	only := flag.String("only", "", "explore only what has `TEXT` in its name")
	results := flag.String("results", "", "write the results to `FILE`; default: none is written")
	states := flag.Int("states", 8_000_000, "maximum number of distinct states of a scenario")
	walks := flag.Int("walks", 20_000, "number of random walks")
	trace := flag.Bool("trace", false, "print the traces of the mutations, too")
	flag.Parse()
	debug.SetMemoryLimit(memoryLimit)

	r := newReport(*only)
	r.exploreAll(ctx, options{states: *states, walks: *walks, trace: *trace})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if *results != "" {
		if err := os.WriteFile(*results, []byte(r.markdownPage()), 0o600); err != nil {
			return err
		}
	}
	return r.failureError()
}

type options struct {
	states, walks int
	trace         bool
}

// A requiredOutcome is the outcome that an exploration must have.
type requiredOutcome int

const (
	scenario requiredOutcome = iota
	mutation
	walking
)

// An exploredScenario is one exploration.
type exploredScenario struct {
	group    string
	kind     requiredOutcome
	scenario smallsaves.Scenario
	result   smallsaves.Result
}

// hasRequiredOutcome reports whether the outcome of the exploration is the required outcome.
func (r *exploredScenario) hasRequiredOutcome() bool {
	switch r.kind {
	case mutation:
		return r.result.Violation != nil
	case walking:
		return r.result.Violation == nil
	default:
		return r.result.Violation == nil && r.result.Exhausted
	}
}

// outcomeText describes the outcome in a few words.
func (r *exploredScenario) outcomeText() string {
	switch {
	case r.result.Violation != nil:
		return "violation: " + r.result.Violation.Message
	case r.kind == walking:
		return "no violation"
	case r.result.Exhausted:
		return "exhausted, no violation"
	}
	return "**not exhausted**: " + r.result.Reason
}

// A report has all explorations, in the order of the page.
type report struct {
	rows   []*exploredScenario
	peakMB uint64
}

func newReport(only string) *report {
	r := &report{}
	add := func(group string, k requiredOutcome, s *smallsaves.Scenario) {
		if strings.Contains(s.Name, only) {
			r.rows = append(r.rows, &exploredScenario{group: group, kind: k, scenario: *s})
		}
	}
	for _, g := range smallsaves.Groups() {
		for i := range g.Scenarios {
			add(g.Title, scenario, &g.Scenarios[i])
		}
	}
	mutations := smallsaves.Mutations()
	for i := range mutations {
		add("mutations", mutation, &mutations[i])
	}
	walks := smallsaves.Walks()
	add("random walks", walking, &walks)
	return r
}

// exploreAll explores the scenarios concurrently, one on each processor, up to two at a
// time.
func (r *report) exploreAll(ctx context.Context, o options) {
	var next, output sync.Mutex
	i := 0
	take := func() *exploredScenario {
		next.Lock()
		defer next.Unlock()
		if i == len(r.rows) || ctx.Err() != nil {
			return nil
		}
		i++
		return r.rows[i-1]
	}
	var explorers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), parallel) {
		explorers.Go(func() {
			for row := take(); row != nil; row = take() {
				row.exploreScenario(ctx, o)
				output.Lock()
				r.notePeak()
				row.printResult(o)
				output.Unlock()
			}
		})
	}
	explorers.Wait()
}

// parallel is the maximum number of scenarios that are explored concurrently, because each needs
// its own memory.
const parallel = 2

// frontier is the maximum memory of the unexplored states of a scenario, in bytes.
const frontier = 1 << 30

func (r *exploredScenario) exploreScenario(ctx context.Context, o options) {
	if r.kind == walking {
		r.result = smallsaves.Walk(ctx, &r.scenario, o.walks)
		return
	}
	r.result = smallsaves.Explore(ctx, &r.scenario, smallsaves.Limits{States: o.states, Frontier: frontier})
}

func (r *exploredScenario) printResult(o options) {
	fmt.Printf("%-40s %9d states %7.1f s  %s\n", r.scenario.Name, r.result.States, r.result.Took.Seconds(), r.outcomeText())
	if r.result.Violation == nil || r.kind == mutation && !o.trace {
		return
	}
	for n, line := range r.result.Violation.Trace {
		fmt.Printf("%6d  %s\n", n+1, line)
	}
}

// notePeak records the memory that the runtime has reserved, if it is a new maximum.
func (r *report) notePeak() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.peakMB = max(r.peakMB, m.Sys>>20)
}

// failureError returns an error that lists the scenarios without the required
// outcome.
func (r *report) failureError() error {
	var wrong []string
	for _, row := range r.rows {
		if !row.hasRequiredOutcome() {
			wrong = append(wrong, row.scenario.Name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d explorations have a wrong outcome: %s", len(wrong), len(r.rows), strings.Join(wrong, ", "))
	}
	return nil
}

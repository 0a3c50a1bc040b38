package simulate

import (
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/coverage"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
)

// Options say which simulations run, and with which faults.
type Options struct {
	Seed  uint64
	Drop  []int // numbers of the faults to omit
	Trace bool  // retain the lines of the trace
	Only  Kind  // only kind of simulation to run; "" means all kinds that the seed has
}

// A Kind is a kind of simulation. A seed may have several.
type Kind string

// The kinds of simulations.
const (
	Mailboxes Kind = "mailboxes" // every seed has this kind
	Push      Kind = "push"
	Broker    Kind = "broker"

	Subscriptions Kind = "subscriptions"
	Watches       Kind = "watches"

	Ledger Kind = "ledger"
)

// includes reports whether a kind of simulation runs. seedHas says whether the seed has it.
func (o *Options) includes(w Kind, seedHas bool) bool { return o.Only == w || o.Only == "" && seedHas }

// A Result is the result of all simulations of a seed.
type Result struct {
	Err       error
	Steps     int
	Faulted   int // number of steps with a fault
	Happened  []int
	Sum       uint64   // hash of the trace
	Trace     []string // for each simulation a heading with the seed and the kind, and then its lines
	Coverage  map[string]int
	Histories int           // number of checked histories
	Passed    time.Duration // simulated time
}

// Simulate runs the simulations of a seed.
func Simulate(t *testing.T, o Options) Result {
	t.Helper()
	warm.Do(func() { runSeed(t, Options{Only: o.Only}) })
	return runSeed(t, o)
}

// warm guards a first run whose result is ignored. In this run, libraries make the system calls that they make only
// once. A checked run must not contain them, because the scheduler does not detect that a goroutine in a system call
// can run.
var warm sync.Once

func runSeed(t *testing.T, o Options) (r Result) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, o.Seed)
	rand.Seed(int64(o.Seed)) //nolint:staticcheck,gosec // the Azure clients draw their jitter from it; see the directive in the test
	// The goroutines of the garbage collector would change the order of other goroutines.
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // package scheduler relies on one processor
	scheduler.SeedChoices(o.Seed)
	r.Coverage = coverage.New()
	isKnown := false
	for _, part := range []struct {
		kind     Kind
		seedHas  bool
		simulate func(*Options) Result
	}{
		{Mailboxes, true, runMailboxes},
		{Push, hasPush(o.Seed), runPush},
		{Broker, hasBroker(o.Seed), runBroker},
		{Subscriptions, hasSubscriptions(o.Seed), runSubscriptions},
		{Watches, hasWatches(o.Seed), runWatches},
		{Ledger, hasObjects(o.Seed), runObjects},
	} {
		if o.includes(part.kind, part.seedHas) {
			isKnown = true
			if o.Trace {
				r.Trace = append(r.Trace, fmt.Sprintf("=== %d/%s", o.Seed, part.kind))
			}
			synctest.Test(t, func(*testing.T) { r.addPart(part.simulate(&o)) })
		}
	}
	if !isKnown {
		r.Err = fmt.Errorf("unknown kind of simulation: %q; want mailboxes, push, broker, subscriptions, watches or ledger", o.Only)
	}
	return r
}

// runMailboxes runs the mailbox simulation of a seed in a synctest bubble.
func runMailboxes(o *Options) Result {
	sim, err := newSimulation(o)
	if err != nil {
		return Result{Err: err}
	}
	err = sim.runToEnd()
	histories := 0
	if err == nil {
		histories, err = sim.work.mailboxes.checkHistories()
	}
	r := sim.newResult(err)
	r.Histories = histories
	return r
}

// newResult closes the accounts, and returns the result of a simulation that ended with err.
func (sim *simulation) newResult(err error) Result {
	return Result{
		Err: errors.Join(err, sim.closeAccounts()), Steps: sim.Steps, Faulted: sim.Faulted, Happened: sim.Happened,
		Sum: sim.Trace.Sum, Trace: sim.Trace.Lines, Coverage: sim.Coverage, Passed: time.Since(sim.Began),
	}
}

// addPart adds the result of one simulation to the result of its seed.
func (r *Result) addPart(part Result) {
	r.Err = errors.Join(r.Err, part.Err)
	r.Steps, r.Faulted, r.Passed = r.Steps+part.Steps, r.Faulted+part.Faulted, r.Passed+part.Passed
	r.Histories += part.Histories
	r.Happened, r.Trace, r.Sum = append(r.Happened, part.Happened...), append(r.Trace, part.Trace...), r.Sum^part.Sum
	for what, n := range part.Coverage {
		r.Coverage[what] += n
	}
}

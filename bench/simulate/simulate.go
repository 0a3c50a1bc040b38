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

// Options say which world is simulated.
type Options struct {
	Seed  uint64
	Drop  []int // numbers of faults that do not happen
	Trace bool  // keep the lines of the trace
	Only  Kind  // the only one that is simulated; "": all that the seed has
}

// A Kind is one of those that a seed may have.
type Kind string

// The worlds.
const (
	Mailboxes Kind = "mailboxes" // every seed has it
	Push      Kind = "push"
	Broker    Kind = "broker"

	Subscriptions Kind = "subscriptions"
	Watches       Kind = "watches"

	Ledger Kind = "ledger"
)

// includes reports whether a world is simulated that the seed has, or has not.
func (o *Options) includes(w Kind, seedHas bool) bool { return o.Only == w || o.Only == "" && seedHas }

// A Result is what came of a simulation.
type Result struct {
	Err       error
	Steps     int
	Faulted   int // steps
	Happened  []int
	Sum       uint64 // of the trace
	Trace     []string
	Coverage  map[string]int
	Histories int           // that were looked at
	Passed    time.Duration // in the world
}

// Simulate lets a world run to its end.
func Simulate(t *testing.T, o Options) Result {
	t.Helper()
	warm.Do(func() { runSeed(t, Options{Only: o.Only}) })
	return runSeed(t, o)
}

// warm is a first simulation. What libraries ask of the system once, they ask then:
// a goroutine that waits for the system is not seen to be one that will run.
var warm sync.Once

func runSeed(t *testing.T, o Options) (r Result) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, o.Seed)
	rand.Seed(int64(o.Seed)) //nolint:staticcheck,gosec // what the Azure clients draw their jitter from; see the directive in the test
	// The garbage collector has goroutines of its own, which mix up the order of ours.
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // see settle
	scheduler.SeedChoices(o.Seed)
	r.Coverage = coverage.NewCounts()
	isKnown := false
	for _, world := range []struct {
		has      bool
		simulate func(*Options) Result
	}{
		{o.includes(Mailboxes, true), runMailboxes},
		{o.includes(Push, hasPush(o.Seed)), runPush},
		{o.includes(Broker, hasBroker(o.Seed)), runBroker},
		{o.includes(Subscriptions, hasSubscriptions(o.Seed)), runSubscriptions},
		{o.includes(Watches, hasWatches(o.Seed)), runWatches},
		{o.includes(Ledger, hasObjects(o.Seed)), runObjects},
	} {
		if world.has {
			isKnown = true
			synctest.Test(t, func(*testing.T) { r.addPart(world.simulate(&o)) })
		}
	}
	if !isKnown {
		r.Err = fmt.Errorf("there is no world %q", o.Only)
	}
	return r
}

// runMailboxes lets the world of mailboxes of a seed run, in a bubble.
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

// addPart adds the result of a world of a seed.
func (r *Result) addPart(world Result) {
	r.Err = errors.Join(r.Err, world.Err)
	r.Steps, r.Faulted, r.Passed = r.Steps+world.Steps, r.Faulted+world.Faulted, r.Passed+world.Passed
	r.Histories += world.Histories
	r.Happened, r.Trace, r.Sum = append(r.Happened, world.Happened...), append(r.Trace, world.Trace...), r.Sum^world.Sum
	for what, n := range world.Coverage {
		r.Coverage[what] += n
	}
}

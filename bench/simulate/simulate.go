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
)

// Options say which world is simulated.
type Options struct {
	Seed  uint64
	Drop  []int // numbers of faults that do not happen
	Trace bool  // keep the lines of the trace
	World World // the only one that is simulated; "": all that the seed has
}

// A World is one of those that a seed may have.
type World string

// The worlds.
const (
	Mailboxes World = "mailboxes" // every seed has it
	Push      World = "push"
	Broker    World = "broker"

	Subscriptions World = "subscriptions"
	Watches       World = "watches"

	Ledger World = "ledger"
)

// has reports whether a world is simulated that the seed has, or has not.
func (o *Options) has(w World, seedHas bool) bool { return o.World == w || o.World == "" && seedHas }

// A Result is what came of a simulation.
type Result struct {
	Err       error
	Steps     int
	Faulted   int // steps
	Happened  []int
	Sum       uint64 // of the trace
	Trace     []string
	Sometimes map[string]int
	Histories int           // that were looked at
	Passed    time.Duration // in the world
}

// Simulate lets a world run to its end.
func Simulate(t *testing.T, o Options) Result {
	t.Helper()
	warm.Do(func() { simulate(t, Options{World: o.World}) })
	return simulate(t, o)
}

// warm is a first simulation. What libraries ask of the system once, they ask then:
// a goroutine that waits for the system is not seen to be one that will run.
var warm sync.Once

func simulate(t *testing.T, o Options) (r Result) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, o.Seed)
	rand.Seed(int64(o.Seed)) //nolint:staticcheck,gosec // what the Azure clients draw their jitter from; see the directive in the test
	// The garbage collector has goroutines of its own, which mix up the order of ours.
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // see settle
	seedChoices(o.Seed)
	r.Sometimes = newSometimes()
	isKnown := false
	for _, world := range []struct {
		has      bool
		simulate func(*Options) Result
	}{
		{o.has(Mailboxes, true), simulateMailboxes},
		{o.has(Push, hasPush(o.Seed)), simulatePush},
		{o.has(Broker, hasBroker(o.Seed)), simulateBroker},
		{o.has(Subscriptions, hasSubscriptions(o.Seed)), simulateSubscriptions},
		{o.has(Watches, hasWatches(o.Seed)), simulateWatches},
		{o.has(Ledger, hasObjects(o.Seed)), simulateObjects},
	} {
		if world.has {
			isKnown = true
			synctest.Test(t, func(*testing.T) { r.add(world.simulate(&o)) })
		}
	}
	if !isKnown {
		r.Err = fmt.Errorf("there is no world %q", o.World)
	}
	return r
}

// simulateMailboxes lets the world of mailboxes of a seed run, in a bubble.
func simulateMailboxes(o *Options) Result {
	w, err := newWorld(o)
	if err != nil {
		return Result{Err: err}
	}
	err = w.simulate()
	histories := 0
	if err == nil {
		histories, err = w.mailboxes.check()
	}
	return Result{
		Err: errors.Join(err, w.close()), Steps: w.steps, Faulted: w.faulted, Happened: w.happen,
		Sum: w.trace.sum, Trace: w.trace.lines, Sometimes: w.sometimes, Histories: histories, Passed: time.Since(w.began),
	}
}

// add adds the result of a world of a seed.
func (r *Result) add(world Result) {
	r.Err = errors.Join(r.Err, world.Err)
	r.Steps, r.Faulted, r.Passed = r.Steps+world.Steps, r.Faulted+world.Faulted, r.Passed+world.Passed
	r.Histories += world.Histories
	r.Happened, r.Trace, r.Sum = append(r.Happened, world.Happened...), append(r.Trace, world.Trace...), r.Sum^world.Sum
	for what, n := range world.Sometimes {
		r.Sometimes[what] += n
	}
}

package simulate

import (
	"errors"
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
}

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
	warm.Do(func() { simulate(t, Options{}) })
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
	synctest.Test(t, func(*testing.T) {
		w, err := newWorld(&o)
		if err != nil {
			r.Err = err
			return
		}
		err = w.simulate()
		histories := 0
		if err == nil {
			histories, err = w.mailboxes.check()
		}
		r = Result{
			Err: errors.Join(err, w.close()), Steps: w.steps, Faulted: w.faulted, Happened: w.happen,
			Sum: w.trace.sum, Trace: w.trace.lines, Sometimes: w.sometimes, Histories: histories, Passed: time.Since(w.began),
		}
	})
	if r.Sometimes != nil && hasPush(o.Seed) {
		synctest.Test(t, func(*testing.T) { r.add(simulatePush(&o)) })
	}
	return r
}

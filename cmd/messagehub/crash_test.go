package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// TestCrashLosesNothing repeatedly kills a hub under load, and compares the
// acknowledged events with the delivered events.
//
// MESSAGEHUB_CRASH_RUNS and MESSAGEHUB_CRASH_KILLS set the number of runs and
// the number of kills in each run, as `make crash` does; the defaults are 1 and
// 15. To repeat a run's events, and its random choices of when to kill the hub,
// set MESSAGEHUB_CRASH_SEED to the seed of that run.
func TestCrashLosesNothing(t *testing.T) {
	runs, kills := number(t, "MESSAGEHUB_CRASH_RUNS", 1), number(t, "MESSAGEHUB_CRASH_KILLS", 15)
	seed := number(t, "MESSAGEHUB_CRASH_SEED", time.Now().UnixNano())
	for i := range runs {
		t.Run(fmt.Sprintf("seed=%d", seed+i), func(t *testing.T) { crash(t, uint64(seed+i), int(kills)) })
	}
}

func number(t *testing.T, variable string, otherwise int64) int64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s: want a whole number of at least 1, got %q", variable, text)
	}
	return n
}

const (
	crashWriters = 4
	crashActors  = 2
)

// A crashRun consists of four writers and two actors, which continue while the
// hub is killed and restarted.
type crashRun struct {
	seed   uint64
	ledger energymarket.Ledger
	hub    *hubPlace
	actors []energymarket.Actor

	stop  chan struct{}   // closed after the last kill, which stops the writers
	quiet chan struct{}   // closed after all writers have stopped; the actors then drain and stop
	mail  []chan struct{} // one channel per actor; receives a value when an event was stored

	acknowledged  atomic.Int64 // number of acknowledged events
	operations    atomic.Int64 // number of requests that were answered
	answered      chan struct{}
	lostReplies   atomic.Int64 // number of Dequeues whose reply was lost
	already       atomic.Int64 // number of 404 replies after a lost reply
	repeatedPeeks atomic.Int64
}

func crash(t *testing.T, seed uint64, kills int) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r := &crashRun{
		seed: seed, ledger: energymarket.NewLedger(), hub: newPlace(), actors: energymarket.New(0, 0, seed).Actors[:crashActors],
		stop: make(chan struct{}), quiet: make(chan struct{}), answered: make(chan struct{}, 1),
	}
	for range r.actors {
		r.mail = append(r.mail, make(chan struct{}, 1))
	}
	var writers, load errgroup.Group
	for i := range crashWriters {
		writers.Go(func() error { return r.write(ctx, i) })
	}
	for i := range r.actors {
		load.Go(func() error { return r.act(ctx, i) })
	}
	load.Go(func() error {
		defer close(r.quiet)
		return writers.Wait()
	})

	last := r.killRepeatedly(ctx, t, kills)
	close(r.stop)
	if err := load.Wait(); err != nil {
		t.Errorf("seed %d: %v\n%s", seed, err, last.stderrText())
	}
	if err := last.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("seed %d: after SIGTERM: %v\n%s", seed, err, last.stderrText())
	}
	r.requireNothingLeft(ctx, t, last.data)
	requireSound(t, last.data)
	verdict := r.ledger.Check()
	t.Logf("seed %d: %d kills, %d events acknowledged, %d peeks repeated, %d dequeues without an answer, of which %d had happened: %s",
		seed, kills, r.acknowledged.Load(), r.repeatedPeeks.Load(), r.lostReplies.Load(), r.already.Load(), verdict)
	if !verdict.OK() {
		t.Errorf("seed %d: %s\n%s", seed, verdict, verdict.Details())
	}
	if r.already.Load() > r.lostReplies.Load() {
		t.Errorf("seed %d: %d answers 404 to %d dequeues without an answer", seed, r.already.Load(), r.lostReplies.Load())
	}
}

// killRepeatedly starts and kills hubs on the same folder, one after another.
// It returns the last hub, which still runs.
func (r *crashRun) killRepeatedly(ctx context.Context, t *testing.T, kills int) *hubProcess {
	random := rand.New(rand.NewPCG(r.seed, 1))
	data := t.TempDir()
	for kill := 0; ; kill++ {
		h := spawnHub(t, "--data", data, "--log-level", "warn")
		h.data = data
		if kill < kills && random.IntN(8) == 0 { // some hubs are killed while they open the folder
			_ = clock.Sleep(ctx, time.Duration(random.IntN(40))*time.Millisecond)
			h.kill()
			continue
		}
		if err := h.waitReady(); err != nil {
			t.Fatalf("seed %d, after %d kills: %v", r.seed, kill, err)
		}
		r.hub.moveTo(h.url(t))
		if kill == kills {
			return h
		}
		r.await(ctx, int64(random.IntN(60)))
		_ = clock.Sleep(ctx, time.Duration(random.IntN(8000))*time.Microsecond)
		h.kill()
	}
}

// requireNothingLeft starts a new hub on the folder, and checks that it has no
// data for the actors.
func (r *crashRun) requireNothingLeft(ctx context.Context, t *testing.T, data string) {
	h := startHub(t, "--data", data)
	hub, err := hubclient.New(h.url(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.actors {
		id, _, err := hub.Peek(ctx, a.GLN, hubclient.PeekOptions{})
		if err != nil || id != "" {
			t.Errorf("seed %d: drained and started again, and %s gets bundle %q, %v", r.seed, a.GLN, id, err)
		}
	}
	if err := h.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("seed %d: after SIGTERM: %v\n%s", r.seed, err, h.stderrText())
	}
}

// requireSound checks the store after crashes: the first check must find no
// damage and repair all findings, and a second check must find nothing.
func requireSound(t *testing.T, data string) {
	t.Helper()
	repaired := messagehub(t, "", "check", "--data", data, "--repair")
	t.Logf("%s", repaired.out)
	if repaired.status != 0 {
		t.Errorf("check --repair: exit status %d\n%s%s", repaired.status, repaired.out, repaired.err)
	}
	again := messagehub(t, "", "check", "--data", data)
	if again.status != 0 || !strings.HasPrefix(again.out, "check: clean\n") {
		t.Errorf("check: exit status %d\n%s%s", again.status, again.out, again.err)
	}
}

// await waits until n more requests were answered.
func (r *crashRun) await(ctx context.Context, n int64) {
	for until := r.operations.Load() + n; r.operations.Load() < until; {
		select {
		case <-r.answered:
		case <-ctx.Done():
			return
		}
	}
}

func (r *crashRun) done() {
	r.operations.Add(1)
	nudge(r.answered)
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // the channel already contains a value
	}
}

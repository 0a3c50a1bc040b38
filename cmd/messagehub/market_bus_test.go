package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	engine "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// TestBusLosesNothing makes domains send events over one bus, while two hubs
// are repeatedly killed. The hubs share the bus, an engine and an account. The
// actors must receive each event once, in order, with its content. The domains
// must receive a notice about each bundle whose content they created.
//
// MESSAGEHUB_BUS_EVENTS, MESSAGEHUB_BUS_ACTORS and MESSAGEHUB_BUS_KILLS replace
// the defaults of 3,000 events, 20 actors and 6 kills. MESSAGEHUB_BUS_SEED
// repeats the same run.
func TestBusLosesNothing(t *testing.T) {
	seed := uint64(number(t, "MESSAGEHUB_BUS_SEED", time.Now().UnixNano()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	r := newBusRun(t, seed, int(number(t, "MESSAGEHUB_BUS_EVENTS", 3000)), int(number(t, "MESSAGEHUB_BUS_ACTORS", 20)))
	began := time.Now()

	load, ctx := errgroup.WithContext(ctx)
	hearing, silence := context.WithCancel(ctx)
	for _, d := range r.domains {
		load.Go(func() error { return d.send(ctx) })
		load.Go(func() error { return d.serve(hearing) })
	}
	for i := range r.actors {
		load.Go(func() error { return r.act(ctx, i) })
	}
	load.Go(func() error {
		defer silence()
		return r.killRepeatedly(ctx, t, int(number(t, "MESSAGEHUB_BUS_KILLS", 6)))
	})
	err := load.Wait()
	require.NoError(t, err, "seed %d\n%s", seed, r.stderrText())
	for _, h := range r.hubs {
		require.NoError(t, h.process.stop(t, syscall.SIGTERM), h.process.stderrText())
	}
	verdict := r.ledger.Check()
	took := time.Since(began)
	t.Logf("seed %d: %d events for %d actors in %s (%.0f a second), %d kills, %d dequeues without an answer, %d notices: %s",
		seed, r.total, len(r.actors), took.Round(time.Millisecond), float64(r.total)/took.Seconds(), r.kills, r.lostReplies.Load(), r.countNotices(), verdict)
	require.True(t, verdict.OK(), "seed %d: %s\n%s", seed, verdict, verdict.Details())
	for _, d := range r.domains {
		require.Empty(t, d.findDisorder(), "seed %d", seed)
	}
	require.Zero(t, r.bus.deadLetters(t, "dataavailable-fifo"), "seed %d", seed)
}

// killRepeatedly kills the hubs alternately while events are sent and fetched.
// It returns when all events have been confirmed.
func (r *busRun) killRepeatedly(ctx context.Context, t *testing.T, kills int) error {
	random := rand.New(rand.NewPCG(r.seed, 1))
	for r.kills = 0; r.kills < kills && !r.isOver(); r.kills++ {
		h := r.hubs[r.kills%2]
		r.await(ctx, r.confirmed.Load()+int64(random.IntN(r.total/(2*kills)+1)))
		_ = clock.Sleep(ctx, time.Duration(random.IntN(50))*time.Millisecond)
		h.process.kill()
		if err := r.startHub(t, h); err != nil {
			return fmt.Errorf("after %d kills: %w", r.kills+1, err)
		}
	}
	r.await(ctx, int64(r.total))
	for _, d := range r.domains {
		if err := d.awaitNotices(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// startHub starts a new hub that replaces a dead one.
func (r *busRun) startHub(t *testing.T, h *busHub) error {
	h.process = spawnHubWith(t, r.environ, "--data", h.data, "--log-level", "warn")
	if err := h.process.waitReady(); err != nil {
		return err
	}
	h.place.moveTo(h.process.url(t))
	return nil
}

// A busHub is one of the two hubs of a busRun.
type busHub struct {
	data    string
	place   *hubPlace
	process *hubProcess
}

func (r *busRun) stderrText() string {
	var all []string
	for _, h := range r.hubs {
		all = append(all, h.process.stderrText())
	}
	return strings.Join(all, "\n")
}

// newEngines starts the emulators of Cosmos DB, Service Bus and Blob Storage
// that the hubs share. Each emulator runs in a separate process.
func (r *busRun) newEngines(t *testing.T) {
	top := t.TempDir()
	entities := filepath.Join(top, "entities.json")
	var queues []string
	queue := func(name string, sessions bool) {
		queues = append(queues, fmt.Sprintf(`{"Name": %q, "Properties": {"RequiresSession": %t, "LockDuration": "PT10S"}}`, name, sessions))
	}
	queue("dataavailable-fifo", true)
	queue("dataavailable", false)
	for _, d := range []string{"charges", "timeseries", "meteringpoints", "marketroles", "wholesale"} {
		queue(d, true)
		queue(d+"-reply", true)
		queue(d+"-dequeue", false)
	}
	require.NoError(t, os.WriteFile(entities, []byte(`{"Queues": [`+strings.Join(queues, ",")+`]}`), 0o600))
	r.bus = startBus(t, "--data", filepath.Join(top, "bus"), "--entities", entities)
	cosmos := startEmulator(t, "--data", filepath.Join(top, "cosmos"))
	blob := startBlobs(t, "--data", filepath.Join(top, "blob"))
	r.account = "http://" + blob.address + "/" + embedded.WellKnownAccount
	r.environ = []string{
		"MESSAGEHUB_COSMOS_ENDPOINT=" + cosmos.url, "MESSAGEHUB_COSMOS_KEY=" + engine.WellKnownKey,
		"MESSAGEHUB_SERVICEBUS_CONNECTION=" + r.bus.connection,
		"MESSAGEHUB_BLOB_ENDPOINT=" + r.account, "MESSAGEHUB_BLOB_KEY=" + embedded.WellKnownKey,
		"MESSAGEHUB_DOMAINS=[{name: Charges, content: request}, {name: TimeSeries, content: request}]",
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestCrashLosesNothing kills a hub under load, again and again, and compares
// what was acknowledged with what was delivered.
//
// MESSAGEHUB_CRASH_RUNS and MESSAGEHUB_CRASH_KILLS ask for more than one run of
// 50 kills; MESSAGEHUB_CRASH_SEED draws the same moments and events again.
func TestCrashLosesNothing(t *testing.T) {
	runs, kills := number(t, "MESSAGEHUB_CRASH_RUNS", 1), number(t, "MESSAGEHUB_CRASH_KILLS", 50)
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

// A crashRun is four writers and two actors who hold out while the hub dies
// under their hands.
type crashRun struct {
	seed   uint64
	ledger *ledger
	hub    *place
	actors []marketActor

	stop  chan struct{}   // closed when the last kill is done: writers finish
	quiet chan struct{}   // closed when all writers have finished: actors drain and finish
	mail  []chan struct{} // wakes an actor for whom something was stored

	acknowledged  atomic.Int64 // events
	operations    atomic.Int64 // that were answered
	answered      chan struct{}
	lostReplies   atomic.Int64 // of Dequeue
	already       atomic.Int64 // answers 404 after a lost reply
	repeatedPeeks atomic.Int64
}

func crash(t *testing.T, seed uint64, kills int) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r := &crashRun{
		seed: seed, ledger: newLedger(), hub: newPlace(), actors: newMarket(0, 0, seed).Actors[:crashActors],
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

	last := r.killing(ctx, t, kills)
	close(r.stop)
	if err := load.Wait(); err != nil {
		t.Errorf("seed %d: %v\n%s", seed, err, last.said())
	}
	if err := last.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("seed %d: after SIGTERM: %v\n%s", seed, err, last.said())
	}
	r.isEmpty(ctx, t, last.data)
	verdict := r.ledger.check()
	t.Logf("seed %d: %d kills, %d events acknowledged, %d peeks repeated, %d dequeues without an answer, of which %d had happened: %s",
		seed, kills, r.acknowledged.Load(), r.repeatedPeeks.Load(), r.lostReplies.Load(), r.already.Load(), verdict)
	if !verdict.ok() {
		t.Errorf("seed %d: %s\n%s", seed, verdict, verdict.details())
	}
	if r.already.Load() > r.lostReplies.Load() {
		t.Errorf("seed %d: %d answers 404 to %d dequeues without an answer", seed, r.already.Load(), r.lostReplies.Load())
	}
}

// killing starts and kills hubs on one folder, and returns the one that lives.
func (r *crashRun) killing(ctx context.Context, t *testing.T, kills int) *hubProcess {
	random := rand.New(rand.NewPCG(r.seed, 1))
	data := t.TempDir()
	for kill := 0; ; kill++ {
		h := spawnHub(t, "--data", data, "--log-level", "warn")
		h.data = data
		if kill < kills && random.IntN(8) == 0 { // die young: while it opens its folder
			sleep(ctx, time.Duration(random.IntN(40))*time.Millisecond)
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
		sleep(ctx, time.Duration(random.IntN(8000))*time.Microsecond)
		h.kill()
	}
}

// isEmpty looks once more, through a hub that knows only what is in the folder.
func (r *crashRun) isEmpty(ctx context.Context, t *testing.T, data string) {
	h := startHub(t, "--data", data)
	hub, err := newClient(h.url(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.actors {
		id, _, err := (&actorClient{hub: hub, actor: a.GLN}).peek(ctx, "/v1/peek")
		if err != nil || id != "" {
			t.Errorf("seed %d: drained and started again, and %s gets bundle %q, %v", r.seed, a.GLN, id, err)
		}
	}
	if err := h.stop(t, syscall.SIGTERM); err != nil {
		t.Errorf("seed %d: after SIGTERM: %v\n%s", r.seed, err, h.said())
	}
}

// await returns when so many more operations have been answered.
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
	default: // it has been nudged before
	}
}

// write sends batches to both actors, each until it is acknowledged.
func (r *crashRun) write(ctx context.Context, writer int) error {
	g := &generator{rand.New(rand.NewPCG(r.seed, uint64(100+writer)))}
	for {
		select {
		case <-r.stop:
			return nil
		default:
		}
		body := []byte{'['}
		n := 1 + g.IntN(25)
		for i := range n {
			k := &kinds[[]int{0, 2, 6}[g.IntN(3)]]
			e := g.event(&r.actors[g.IntN(crashActors)], k, day)
			r.ledger.send(writer, &e)
			if i > 0 {
				body = append(body, ',')
			}
			body = e.appendJSON(body)
		}
		body = append(body, ']')
		err := r.hub.until(ctx, func(ctx context.Context, hub *client) error {
			got, err := (&sender{hub: hub}).postOnce(ctx, body)
			if err == nil && got.Accepted+got.Duplicates != n {
				return violation{fmt.Errorf("writer %d sent %d events: %+v", writer, n, got)}
			}
			return err
		})
		if err != nil {
			return err
		}
		r.acknowledged.Add(int64(n))
		r.done()
		for _, m := range r.mail {
			nudge(m)
		}
	}
}

// act peeks and dequeues until the writers are quiet and nothing is left.
func (r *crashRun) act(ctx context.Context, index int) error {
	random := rand.New(rand.NewPCG(r.seed, uint64(200+index)))
	actor := r.actors[index].GLN
	paths := []string{"/v1/peek", "/v1/peek", "/v1/peek/timeseries", "/v1/peek/aggregations", "/v1/peek/masterdata"}
	for {
		quiet := false
		select {
		case <-r.quiet:
			quiet = true
		default:
		}
		path := paths[random.IntN(len(paths))]
		if quiet {
			path = paths[0]
		}
		id, err := r.peek(ctx, actor, path)
		switch {
		case err != nil:
			return err
		case id == "" && quiet:
			return nil
		case id == "":
			select {
			case <-r.mail[index]:
			case <-r.quiet:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if random.IntN(4) == 0 {
			again, err := r.peek(ctx, actor, path)
			if err != nil {
				return err
			}
			if again != id {
				return fmt.Errorf("actor %s peeked bundle %s and then, before it dequeued it, %q", actor, id, again)
			}
			r.repeatedPeeks.Add(1)
		}
		if err := r.dequeue(ctx, actor, id); err != nil {
			return err
		}
	}
}

func (r *crashRun) peek(ctx context.Context, actor, path string) (id string, err error) {
	err = r.hub.until(ctx, func(ctx context.Context, hub *client) error {
		asked := time.Now()
		var body []byte
		var err error
		if id, body, err = (&actorClient{hub: hub, actor: actor}).peek(ctx, path); err != nil || id == "" {
			return err
		}
		if err := r.ledger.peeked(actor, id, body, asked); err != nil {
			return violation{err}
		}
		r.done()
		return nil
	})
	return id, err
}

// dequeue repeats a Dequeue until it is answered. A 404 is right only after an
// answer that may have been lost.
func (r *crashRun) dequeue(ctx context.Context, actor, id string) error {
	lost := false
	return r.hub.until(ctx, func(ctx context.Context, hub *client) error {
		ok, err := (&actorClient{hub: hub, actor: actor}).dequeue(ctx, id)
		switch {
		case err != nil:
			if !lost {
				r.lostReplies.Add(1)
			}
			lost = true
			return err
		case !ok && !lost:
			return violation{fmt.Errorf("bundle %s of %s is 404, although it was peeked and never dequeued", id, actor)}
		case !ok:
			r.already.Add(1)
		}
		r.ledger.dequeued(actor, id, ok, time.Now())
		r.done()
		return nil
	})
}

// A violation is what no crash excuses.
type violation struct{ error }

// A place is where the hub is, as long as it lives there.
type place struct {
	mu    sync.Mutex
	hub   *client
	moved chan struct{} // closed when hub is another one
}

func newPlace() *place { return &place{moved: make(chan struct{})} }

func (p *place) moveTo(url string) {
	hub, err := newClient(url)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hub != nil {
		p.hub.close()
	}
	p.hub = hub
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *place) now() (*client, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hub, p.moved
}

// until tries against one hub after the other, until one answers. An answer that
// says no is final, unless it says that it may pass.
func (p *place) until(ctx context.Context, try func(context.Context, *client) error) error {
	for {
		hub, moved := p.now()
		var err error
		if hub != nil {
			inTime, cancel := context.WithTimeout(ctx, patience)
			err = try(inTime, hub)
			cancel()
			if err == nil {
				return nil
			}
			if _, ok := errors.AsType[violation](err); ok {
				return err
			}
			if refused, ok := errors.AsType[*problem](err); ok {
				if !refused.passing() || refused.Status == http.StatusBadGateway {
					return err
				}
				if !sleep(ctx, 10*time.Millisecond) {
					return ctx.Err()
				}
				continue
			}
		}
		select {
		case <-moved:
		case <-time.After(patience):
			return fmt.Errorf("no hub for %s: %w", patience, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

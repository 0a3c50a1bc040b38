package simulate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	blobembedded "github.com/messagehub/messagehub/repository/content/embedded"
)

// A world is two hubs on one account, one namespace and one exchange, with domains
// and actors around them.
type world struct {
	*scheduler
	o    *Options
	plan plan

	engine    *embedded.Engine
	bus       *busembedded.Namespace
	blobs     *blobembedded.Account
	stale     atomic.Int64 // commits by which the read that is being made is too old
	ledger    *referenceLedger
	judges    map[containers.Judge]judge
	witness   *witness
	poisons   *poisons
	shelf     *shelf // nil: nobody asks what is stored
	outbox    outbox
	asked     map[string]int // how often, of requests of each kind
	throttled int            // requests

	mailboxes *mailboxes
	issuer    *tokenIssuer // of the tokens of all clients; nil: the hubs believe the header X-Actor-Id

	mu     sync.Mutex
	hubs   [hubs]*hub // nil: down
	lives  [hubs]int
	storm  time.Time    // until then Cosmos throttles everybody
	hot    string       // or only who asks for this partition; "": all
	busy   string       // the partition that was asked for last
	locked time.Time    // until then the accounts refuse everybody
	away   atomic.Int64 // until then no hub reaches the bus
	done   bool
	ending atomic.Bool // no hub is started any more

	strike     atomic.Bool // no domain makes content
	bare       atomic.Bool // a container is gone, and with it perhaps what the groups are
	vandalised atomic.Bool // nothing that is stored is to be relied on any more

	ctx    context.Context //nolint:containedctx // that of all parties
	cancel context.CancelFunc
	ghosts sync.WaitGroup // all that ends when the lines are cut
	lines  []*busLine

	httpLines []*httpLine
}

// hubs is how many there are.
const hubs = 2

func newWorld(o *Options) (*world, error) {
	d, latest := newDice(o.Seed, 3), newDice(o.Seed, 7)
	w := &world{o: o, plan: newPlan(d, newDice(o.Seed, 4), newDice(o.Seed, 5), latest), scheduler: newScheduler(o, newWeather(d)), ledger: newLedger(), poisons: newPoisons(), outbox: make(outbox), asked: make(map[string]int)}
	if isSmall(o.Seed) {
		if w.plan.shrinks(); newDice(o.Seed, 9).n(12) == 0 {
			w.plan.wakesUpEarly()
		}
		net := newDice(o.Seed, 99)
		w.plan.sockets, w.plan.hot = net.n(2) == 0, net.n(4) == 0
	}
	w.plan.receivers = newDice(o.Seed, 402).n(12) == 0
	w.plan.deletes = w.plan.isRequesting() && !w.plan.vandal && newDice(o.Seed, 404).n(2) == 0
	if w.plan.hot {
		w.weather.storms = max(w.weather.storms, 200)
	}
	if w.plan.vandal {
		w.shelf = newShelf()
	}
	if rights := newDice(o.Seed, 6); rights.n(4) == 0 { // to break off what is tried again otherwise, anywhere
		w.weather.usual, w.weather.faults = faulty.Forbidden.String(), max(w.weather.faults, 60)
	}
	if latest.n(3) == 0 {
		w.weather.firsts = []int{60, 150, 300}[latest.n(3)]
	}
	if tokens := newDice(o.Seed, 405); tokens.n(5) == 0 {
		w.issuer = newTokenIssuer(w, tokens)
		w.weather.jumps = 0 // by which a token expires at any time
	}
	w.judges, w.witness = newJudges(w), newWitness(w)
	w.mailboxes = newMailboxes(w)
	if w.plan.dawns { // to have a sweep come upon Saves that do not know what they have done
		w.weather.usual, w.weather.faults = faulty.ReplyLostAfter.String(), max(w.weather.faults, 150)
	}
	if w.plan.days > 1 { // in which a clock that jumps would forget too early
		w.weather.jumps = 0
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	var err error
	if w.bus, err = busembedded.Open(busembedded.Options{Entities: w.plan.entities(), Keys: busKeys}); err != nil {
		return nil, err
	}
	if w.blobs, err = blobembedded.Open(blobembedded.Options{Containers: []string{exchange_, content_}}); err != nil {
		return nil, err
	}
	options := embedded.Options{Consistency: w.plan.consistency, RangeBytes: w.plan.rangeBytes, Committed: w.committed}
	if w.plan.consistency == "Session" {
		options.Stale = func() int { return int(w.stale.Load()) }
	}
	w.engine, err = embedded.Open(options)
	return w, err
}

func (w *world) close() error {
	return errors.Join(w.engine.Close(), w.bus.Close(), w.blobs.Close())
}

// staleness decides how many commits ago the state is that a read shows.
func (w *world) staleness(x *exchange) int {
	if w.calm || !x.isCosmos || !x.isRead || w.plan.consistency != "Session" || !w.mishaps.chance(w.weather.stale) {
		return 0
	}
	old := 1 + w.mishaps.n(6)
	if !w.mayHappen() {
		return 0
	}
	return old
}

// slowness decides how long an answer takes.
func (w *world) slowness() time.Duration {
	if w.calm || !w.mishaps.chance(w.weather.slow) {
		return 0
	}
	d := time.Duration(1+w.mishaps.n(3000)) * time.Millisecond
	if w.mishaps.n(4) > 0 {
		d /= 100
	}
	if !w.mayHappen() {
		return 0
	}
	return d
}

func (w *world) isBlob(req *http.Request) bool {
	return strings.HasPrefix(req.URL.Path, "/"+w.blobs.Name())
}

// buffered makes the body of a request one that can be read whenever.
func buffered(req *http.Request) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return err
}

// mishapsOfAll are those that befall no single turn: hubs die, stop and pause,
// connections break, clocks jump.
func (w *world) mishapsOfAll() {
	if w.calm {
		w.setsRight()
		return
	}
	happens := func(rate int) bool {
		return rate > 0 && w.mishaps.n(100_000) < rate && w.mayHappen()
	}
	i := w.mishaps.n(hubs)
	h := w.hub(i)
	if h == nil {
		return
	}
	switch {
	case happens(w.weather.kills):
		w.tell(h.who + " is killed")
		h.kill()
		w.reached("a hub was killed")
	case happens(w.weather.stops):
		w.tell(h.who + " is told to stop")
		h.stop()
		w.reached("a hub was told to stop, and started again")
	case w.weather.firsts > 0 && happens(100):
		w.tell(h.who + " loses its listener")
		h.breaks()
		w.reached("a hub lost its listener")
	case happens(w.weather.pauses):
		d := time.Duration(1+w.mishaps.n(90)) * time.Second
		w.tell(h.who + " is paused for " + d.String())
		w.mutePause(h.who, d)
		w.reached("a hub was paused")
	case happens(w.weather.drops):
		w.tell("the bus drops its connections")
		w.bus.DropConnections()
		w.reached("the bus dropped its connections")
	case happens(w.weather.storms):
		d := time.Duration(1+w.mishaps.n(180)) * time.Second
		w.storm = time.Now().Add(d)
		if w.plan.hot && w.mishaps.n(2) == 0 {
			w.hot = w.busy
			w.tell("partition " + w.hot + " is throttled for " + d.String())
			w.reached("one partition was throttled for a while")
			return
		}
		w.hot = ""
		w.tell("the account throttles everybody for " + d.String())
		w.reached("the account throttled everybody for a while")
	case w.plan.revokes && happens(150):
		d := time.Duration(1+w.mishaps.n(40)) * time.Second
		w.tell("the accounts refuse everybody for " + d.String())
		w.locked = time.Now().Add(d)
		w.reached("an account refused everybody for a while")
	case h.isWrong && happens(w.wrongFor()):
		w.tell(h.who + " is to get its right settings")
		h.kill()
	case happens(w.weather.jumps):
		d := time.Duration(w.mishaps.n(7200)-3600) * time.Second
		w.tell(h.who + " has its clock moved by " + d.String())
		h.skew.Store(int64(d))
		w.reached("a clock jumped")
	}
}

// wrongFor is how often, in a hundred thousand steps, somebody sees that the settings of
// a hub are wrong.
func (w *world) wrongFor() int {
	if w.plan.keeper || w.vandalised.Load() {
		return 500
	}
	return 2000
}

func (w *world) mutePause(who string, d time.Duration) {
	w.scheduler.mu.Lock()
	defer w.scheduler.mu.Unlock()
	w.paused[who] = time.Now().Add(d)
}

func (w *world) hub(i int) *hub {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hubs[i]
}

// Run lets the world run to its end, and returns what was wrong with it.
func (w *world) simulate() error {
	for i := range w.hubs {
		w.begins(i)
	}
	w.ghosts.Go(w.direct)
	err := w.run(func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.done }, func() error { w.mishapsOfAll(); return nil })
	w.ending.Store(true)
	w.cancel()
	for i := range w.hubs {
		if h := w.hub(i); h != nil {
			h.kill()
		}
	}
	for _, l := range w.httpLines {
		l.cut()
	}
	for _, l := range w.lines {
		l.dead.Store(true)
		l.cut()
	}
	w.ghosts.Wait()
	return err
}

// direct is the course of events: the parties do what they have to do, and then all
// is well and everything has to come to its end.
func (w *world) direct() {
	err := w.course()
	if err == nil && w.plan.vandal && w.ctx.Err() == nil {
		err = w.vandalise()
	}
	if err != nil {
		w.fail(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	w.rouse()
}

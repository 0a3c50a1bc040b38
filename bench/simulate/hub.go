package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A hub is one life of a node: what cmd/node makes of the shipped parts, on lines of
// its own. When it is killed, the lines are cut, and whatever it still does reaches
// nobody.
type hub struct {
	w       *world
	index   int
	life    int // how many there were before it, and it
	who     string
	http    *httpLine
	bus     *busLine
	handler http.Handler
	skew    atomic.Int64 // of its clock
	end     context.CancelFunc
	died    chan struct{} // closed by kill
	killed  atomic.Bool
	isWrong bool // its settings

	stopping atomic.Bool
	broken   atomic.Bool // its listener
	listener *idleListener
}

// begins starts a hub, and another when that has ended.
func (w *world) begins(i int) {
	w.ghosts.Go(func() {
		for w.ctx.Err() == nil && !w.ending.Load() {
			h := w.newHub(i)
			if h.live(); h.killed.Load() {
				return // whoever has killed it has begun another
			}
			_ = clock.Sleep(w.ctx, time.Second) // the loop looks at the context
		}
	})
}

func (w *world) newHub(i int) *hub {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives[i]++
	who := fmt.Sprintf("hub-%d.%d", i, w.lives[i])
	h := &hub{w: w, index: i, life: w.lives[i], who: who, http: w.newHTTPLine(who), bus: &busLine{w: w, who: who, isHubs: true}, died: make(chan struct{}), listener: newIdleListener()}
	w.lines = append(w.lines, h.bus)
	return h
}

// operatorToken is what the operators of all hubs show.
const operatorToken = "token-of-the-operators" //nolint:gosec // of hubs in the simulation, which nothing else reaches

// settings are those of a hub whose accounts are all elsewhere.
func (w *world) settings() config.Config {
	cfg := config.Default()
	cfg.Cosmos.Endpoint = w.cosmosEndpoint()
	cfg.Cosmos.Key = config.Secret(w.engine.Key())
	cfg.ServiceBus.Connection = config.Secret(w.bus.ConnectionString(""))
	cfg.Blob.Endpoint = w.blobEndpoint()
	cfg.Blob.Key = config.Secret(w.blobs.Key())
	cfg.Limits.Content = contentLimit
	cfg.Survey.Units = 50
	cfg.ServiceBus.Sessions = 1 + int(w.o.Seed%2) // waiting for a session is a lot of talk
	cfg.Domains = w.plan.domains
	cfg.Ordering = w.plan.ordering
	cfg.Admin.Token = operatorToken
	cfg.Retention = w.plan.retention
	if w.issuer != nil {
		w.issuer.configure(&cfg)
	}
	return cfg
}

// secure makes an endpoint one that a hub may call: nobody listens on these lines.
func secure(endpoint string) string { return strings.Replace(endpoint, "http://", "https://", 1) }

// tailEvents is how many events a hub leaves in a head. The hubs of a world may have
// different numbers, and in some worlds all have 0.
func (h *hub) tailEvents() int {
	if newDice(h.w.o.Seed, 403).n(4) == 0 {
		return 0
	}
	own := newDice(h.w.o.Seed, uint64(410+100*h.index+h.life)) //nolint:gosec // positive
	return []int{1, 2, 3, 5, 24, 24, 24, 0}[own.n(8)]
}

// unfiltered is how many cabinets a hub reads one by one rather than the filter of their
// recipient. Few worlds have as many as the default.
func (h *hub) unfiltered() int {
	own := newDice(h.w.o.Seed, uint64(420+100*h.index+h.life)) //nolint:gosec // positive
	return []int{-1, -1, 1, 2, 0}[own.n(5)]
}

// live opens the node and runs it to its end.
func (h *hub) live() {
	ctx, cancel := context.WithCancel(h.w.ctx)
	defer cancel()
	h.w.mu.Lock()
	h.end = cancel
	h.w.mu.Unlock()
	cfg, random := h.w.settings(), newDice(h.w.o.Seed, uint64(1000*(h.index+1)+h.life)) //nolint:gosec // positive
	h.missets(random, &cfg)
	cfg.Cosmos.TailEvents = h.tailEvents()
	options := node.Options{
		Registry: prometheus.NewRegistry(), // nothing of the process, for that would be asked of the system
		Logger:   h.logger(), Listener: h.listener, Grace: 3 * time.Second,
		Transport: h.http, DialBus: h.bus.dial,
		DrawerCapacity: h.w.plan.capacity, SweepEvery: h.w.plan.sweepEvery, Unfiltered: h.unfiltered(),
		Ingestion: h.w.plan.ingestion(),
		PullOnly:  true, // the judges know no documents of the push side
		// Nothing here asks /readyz, and reads every 5 s would fill the long spans of time.
		ReadinessInterval: -1,
		Clock:             func() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) },
		Random:            random.next,
		WrapHandler: func(handler http.Handler) http.Handler {
			h.handler = handler
			return handler
		},
	}
	if h.w.plan.receivers {
		r := h.newReceiver()
		defer r.cut()
		options.Transport, options.Dial, options.LookUp = nil, r.dial, h.w.lookUp
	}
	if issuer, others := h.w.issuer, options.Dial; issuer != nil {
		options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			switch {
			case address == issuerAddress:
				return issuer.dial(ctx, h)
			case others == nil:
				return nil, errRefused
			}
			return others(ctx, network, address)
		}
	}
	n, err := node.Open(ctx, cfg, options)
	if err != nil {
		h.w.reached("a hub could not start")
		return
	}
	h.w.mu.Lock()
	if !h.killed.Load() {
		h.w.hubs[h.index] = h
	}
	h.w.mu.Unlock()
	err = n.Run(ctx)
	h.w.mu.Lock()
	if h.w.hubs[h.index] == h {
		h.w.hubs[h.index] = nil
	}
	h.w.mu.Unlock()
	// One that is told to stop while nothing answers, as one that is paused, runs out of time.
	isCut := h.stopping.Load() && errors.Is(err, context.DeadlineExceeded)
	if err != nil && !isCut && !h.broken.Load() && !h.killed.Load() && h.w.ctx.Err() == nil {
		h.w.fail(fmt.Errorf("%s has ended: %w", h.who, err))
	}
}

// stop tells the hub to end, as an operator does.
func (h *hub) stop() {
	h.stopping.Store(true)
	h.end()
}

// breaks has the hub lose its listener, after which it ends by itself.
func (h *hub) breaks() {
	h.broken.Store(true)
	_ = h.listener.Close()
}

// kill ends it at once.
func (h *hub) kill() {
	if h.killed.Swap(true) {
		return
	}
	h.w.mu.Lock()
	if h.w.hubs[h.index] == h {
		h.w.hubs[h.index] = nil
	}
	h.w.mu.Unlock()
	h.http.cut()
	h.bus.dead.Store(true)
	h.bus.cut()
	close(h.died)
	if !h.w.ending.Load() {
		h.w.witness.died(h.who)
	}
	h.end()
	if !h.w.ending.Load() {
		h.w.begins(h.index)
	}
}

// An idleListener has no clients: those of a simulation call the handler.
type idleListener struct {
	closed chan struct{}
	once   atomic.Bool
}

func newIdleListener() *idleListener { return &idleListener{closed: make(chan struct{})} }

func (l *idleListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *idleListener) Close() error {
	if l.once.Swap(true) {
		return net.ErrClosed
	}
	close(l.closed)
	return nil
}

func (l *idleListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

var errRefused = errors.New("nobody listens there")

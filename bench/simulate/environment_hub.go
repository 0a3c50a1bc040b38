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

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A hub is one process of a simulated hub: a node that cmd/node builds from the shipped components, on its own
// transports. A kill cuts the transports of the hub, so that its remaining goroutines have no effect.
type hub struct {
	sim             *simulation
	index           int
	number          int // number of this process, counted per hub from 1
	who             string
	transport       *httpTransport
	busTransport    *busTransport
	handler         http.Handler
	skew            atomic.Int64 // difference between the hub's clock and the correct time, in ns
	cancel          context.CancelFunc
	died            chan struct{} // closed by kill
	killed          atomic.Bool
	isMisconfigured bool // true if the settings are wrong

	stopping atomic.Bool
	broken   atomic.Bool // true after the listener was closed
	listener *idleListener
}

// startHub starts the i-th hub, and restarts the hub each time it ends.
func (sim *simulation) startHub(i int) {
	sim.background.Go(func() {
		for sim.ctx.Err() == nil && !sim.isEnding.Load() {
			h := sim.newHub(i)
			if h.runNode(); h.killed.Load() {
				return // kill starts the next process
			}
			_ = clock.Sleep(sim.ctx, time.Second) // the loop checks the context
		}
	})
}

func (sim *simulation) newHub(i int) *hub {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.env.starts[i]++
	who := fmt.Sprintf("hub-%d.%d", i, sim.env.starts[i])
	h := &hub{sim: sim, index: i, number: sim.env.starts[i], who: who, transport: sim.newHTTPTransport(who), busTransport: &busTransport{sim: sim, who: who, isHubs: true}, died: make(chan struct{}), listener: newIdleListener()}
	sim.env.busTransports = append(sim.env.busTransports, h.busTransport)
	return h
}

// operatorToken is the token of all operators.
const operatorToken = "token-of-the-operators" //nolint:gosec // only clients in the bubble reach these hubs

// hubSettings returns the correct settings of a hub. They configure all accounts as external.
func (sim *simulation) hubSettings() config.Config {
	cfg := config.Default()
	cfg.Cosmos.Key = config.Secret(sim.env.engine.Key())
	cfg.ServiceBus.Connection = config.Secret(sim.env.bus.ConnectionString(""))
	cfg.Blob.Endpoint = sim.blobEndpoint()
	cfg.Blob.Key = config.Secret(sim.env.blobs.Key())
	cfg.Limits.Content = contentLimit
	cfg.Survey.Units = 50
	cfg.ServiceBus.Sessions = 1 + int(sim.options.Seed%2) // few sessions, because waiting for a session takes many steps
	cfg.Domains = sim.plan.domains
	cfg.Ordering = sim.plan.ordering
	cfg.Admin.Token = operatorToken
	cfg.Retention = sim.plan.retention
	if sim.env.issuer != nil {
		sim.env.issuer.configureHub(&cfg)
	}
	return cfg
}

// withHTTPS returns an endpoint with the scheme that hubs accept. The transports ignore the scheme.
func withHTTPS(endpoint string) string { return strings.Replace(endpoint, "http://", "https://", 1) }

// tailEvents returns the maximum number of events in the tail of a head that the hub writes. The hubs of a simulation
// may have different limits. In some simulations the limit is 0 for all hubs.
func (h *hub) tailEvents() int {
	if random.New(h.sim.options.Seed, 403).IntN(4) == 0 {
		return 0
	}
	own := random.New(h.sim.options.Seed, uint64(410+100*h.index+h.number)) //nolint:gosec // positive
	return []int{1, 2, 3, 5, 24, 24, 24, 0}[own.IntN(8)]
}

// unfilteredCabinets returns the number of cabinets that a hub reads one by one before it uses the filter of the
// recipient. The limits are low, because the recipients of a simulation rarely have as many cabinets as the default
// limit.
func (h *hub) unfilteredCabinets() int {
	own := random.New(h.sim.options.Seed, uint64(420+100*h.index+h.number)) //nolint:gosec // positive
	return []int{-1, -1, 1, 2, 0}[own.IntN(5)]
}

// runNode opens the node and runs it until it ends.
func (h *hub) runNode() {
	ctx, cancel := context.WithCancel(h.sim.ctx)
	defer cancel()
	h.sim.mu.Lock()
	h.cancel = cancel
	h.sim.mu.Unlock()
	cfg, random := h.sim.hubSettings(), random.New(h.sim.options.Seed, uint64(1000*(h.index+1)+h.number)) //nolint:gosec // positive
	cfg.Cosmos.Endpoint = h.cosmosEndpoint()
	h.misconfigure(random, &cfg)
	cfg.Cosmos.TailEvents = h.tailEvents()
	options := node.Options{
		Registry: prometheus.NewRegistry(), // without the process collectors, which query the operating system
		Logger:   h.newLogger(), Listener: h.listener, Grace: 3 * time.Second,
		Transport: h.transport, DialBus: h.busTransport.dialBus,
		DrawerCapacity: h.sim.plan.capacity, SweepEvery: h.sim.plan.sweepEvery, Unfiltered: h.unfilteredCabinets(),
		Ingestion: h.sim.plan.ingestLimits(),
		PullOnly:  true, // the checkers do not know documents of the push side
		// No client requests /readyz, and a read every 5 s would take most of the steps during long waits.
		ReadinessInterval: -1,
		Clock:             func() time.Time { return time.Now().Add(time.Duration(h.skew.Load())) },
		Random:            random.Uint64,
		WrapHandler: func(handler http.Handler) http.Handler {
			h.handler = handler
			return handler
		},
	}
	if h.sim.plan.usesReceivers {
		r := h.newHTTPReceiver()
		defer r.shutDown()
		options.Transport, options.Dial, options.LookUp = nil, r.dialReceiver, h.sim.lookUpHost
	}
	if issuer, others := h.sim.env.issuer, options.Dial; issuer != nil {
		options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			switch {
			case address == issuerAddress:
				return issuer.dialIssuer(ctx, h)
			case others == nil:
				return nil, errRefused
			}
			return others(ctx, network, address)
		}
	}
	n, err := node.Open(ctx, cfg, options)
	if err != nil {
		h.sim.MarkReached("a hub could not start")
		return
	}
	h.sim.mu.Lock()
	if !h.killed.Load() {
		h.sim.env.hubs[h.index] = h
	}
	h.sim.mu.Unlock()
	err = n.Run(ctx)
	h.sim.mu.Lock()
	if h.sim.env.hubs[h.index] == h {
		h.sim.env.hubs[h.index] = nil
	}
	h.sim.mu.Unlock()
	// A hub that is stopped or paused while no account responds exceeds its stop timeout.
	isCut := h.stopping.Load() && errors.Is(err, context.DeadlineExceeded)
	if err != nil && !isCut && !h.broken.Load() && !h.killed.Load() && h.sim.ctx.Err() == nil {
		h.sim.Fail(fmt.Errorf("%s ended: %w", h.who, err))
	}
}

// stopGracefully stops the hub as an operator does, by cancelling its context.
func (h *hub) stopGracefully() {
	h.stopping.Store(true)
	h.cancel()
}

// closeListener closes the hub's listener, after which the hub ends.
func (h *hub) closeListener() {
	h.broken.Store(true)
	_ = h.listener.Close()
}

// kill ends the process immediately.
func (h *hub) kill() {
	if h.killed.Swap(true) {
		return
	}
	h.sim.mu.Lock()
	if h.sim.env.hubs[h.index] == h {
		h.sim.env.hubs[h.index] = nil
	}
	h.sim.mu.Unlock()
	h.transport.cutOff()
	h.busTransport.dead.Store(true)
	h.busTransport.cutConnections()
	close(h.died)
	if !h.sim.isEnding.Load() {
		h.sim.work.coverObserver.observeDeath(h.who)
	}
	h.cancel()
	if !h.sim.isEnding.Load() {
		h.sim.startHub(h.index)
	}
}

// An idleListener accepts no connections: the clients of a simulation call the hub's handler directly.
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

var errRefused = errors.New("no program listens there")

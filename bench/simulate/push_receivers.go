package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
)

// A pushReceiver is an HTTP server that nodes call. While faults happen it fails in many ways.
type pushReceiver struct {
	sim         *pushSimulation
	name        string
	address     string
	rng         random.Source
	cursor      domain.CursorID
	stream      domain.StreamName
	concurrency int
	filters     bool
	fails       int         // number of calls in ten that the receiver fails while faults happen
	poison      *push.Entry // entry whose delivery kills the node; may be nil
	isCreated   bool
	redirects   bool // true if the receiver redirects calls to itself, and nodes follow the redirects
	// check compares a call with the sent message. It may be nil.
	check func(req *http.Request, body []byte, e push.Entry) error

	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	// The fields below are guarded by pushSimulation.pmu.
	isDeleted      bool // true after the first request to delete the subscription
	accepted       map[push.Entry]bool
	fetched        map[push.Entry]bool   // entries in bundles that a consumer has begun to dequeue
	ids            map[string]push.Entry // entries by delivery id
	callers        map[string]*pushNode  // node that called last, by delivery id
	begun          int64                 // number of calls that nodes began
	killedNodes    int                   // number of nodes that the poison entry killed
	activeCalls    int                   // number of calls that have not ended
	maxActiveCalls int
}

func (p *pushSimulation) newReceiver(id domain.CursorID, stream domain.StreamName, name string, i int) *pushReceiver {
	rng := random.New(p.options.Seed, p.purposes+uint64(540+i)) //nolint:gosec // positive
	r := &pushReceiver{
		sim: p, name: name, address: fmt.Sprintf("192.0.2.%d", 10+i), rng: rng, cursor: id, stream: stream, concurrency: 1 + rng.IntN(4), filters: rng.IntN(3) == 0, fails: []int{0, 1, 4, 8}[rng.IntN(4)],
		conns: make(chan net.Conn), closed: make(chan struct{}),
		accepted: make(map[push.Entry]bool), fetched: make(map[push.Entry]bool), ids: make(map[string]push.Entry), callers: make(map[string]*pushNode),
	}
	if i == 0 && p.rng.IntN(4) == 0 {
		r.poison = &push.Entry{Stream: stream.String(), Number: int64(3 * rng.IntN(3))}
	}
	r.server = &http.Server{Handler: r, ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // nodes are its only clients
	p.pmu.Lock()
	p.receivers[id.String()] = r
	p.addresses[r.address] = r
	p.pmu.Unlock()
	p.background.Go(func() { _ = r.server.Serve(r) }) // Serve returns when the server is closed
	return r
}

// Receiver implements [delivery.Receivers].
func (p *pushSimulation) Receiver(_ context.Context, id domain.CursorID, _ bool) (delivery.Receiver, error) {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	r := p.receivers[id.String()]
	if r == nil {
		return delivery.Receiver{}, domain.Errorf(domain.NotFound, "receiver %s does not exist", id)
	}
	return delivery.Receiver{
		Subscription: domain.Subscription{CallbackURL: "http://" + r.name + ".example/hook", Method: http.MethodPost, Encoding: domain.JSONEncoding},
		Policy:       domain.QueuePolicy(pushDelays, len(pushDelays)), Concurrency: r.concurrency, Target: r,
		Matches: func(e *repository.Entry) bool {
			return r.matches(entryOf(r.stream, e.Position.EntryID))
		},
	}, nil
}

func (r *pushReceiver) matches(e push.Entry) bool { return !r.filters || e.Number%3 != 1 }

// noteCall records that a node calls the receiver with a delivery.
func (r *pushReceiver) noteCall(n *pushNode, id string, e domain.EntryID) {
	r.sim.pmu.Lock()
	defer r.sim.pmu.Unlock()
	r.begun++
	r.callers[id] = n
	r.ids[id] = entryOf(r.stream, e)
}

// matches reports whether the subscription of a cursor includes entry e. The observer calls matches, hasAccepted and
// countCalls.
func (p *pushSimulation) matches(cursor string, e push.Entry) bool {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	return p.receivers[cursor].matches(e)
}

func (p *pushSimulation) hasAccepted(cursor string, e push.Entry) bool {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	r := p.receivers[cursor]
	return r.accepted[e] || r.fetched[e]
}

func (p *pushSimulation) countCalls(cursor string) int64 {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	return p.receivers[cursor].begun
}

// pushReceivers is the address range of receivers. Nodes may call only addresses in this range.
const pushReceivers = "192.0.2.0/24"

// metadataAddress is the metadata service of a cloud. Receivers redirect calls there.
const metadataAddress = "169.254.169.254"

// lookUpReceiver resolves the host names of receivers.
func (p *pushSimulation) lookUpReceiver(_ context.Context, host string) ([]netip.Addr, error) {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	for address, r := range p.addresses {
		if host == r.name+".example" {
			return []netip.Addr{netip.MustParseAddr(address)}, nil
		}
	}
	return nil, errors.New("no host has the name " + host)
}

// dialReceiver connects a node to a receiver.
func (n *pushNode) dialReceiver(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.sim.pmu.Lock()
	r := n.sim.addresses[host]
	n.sim.pmu.Unlock()
	if r == nil {
		err := fmt.Errorf("P12: %s dials %s, which is not the address of a receiver", n.who, address)
		n.sim.Fail(err)
		return nil, err
	}
	near, far := net.Pipe()
	select {
	case r.conns <- far:
		return near, nil
	case <-r.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (r *pushReceiver) Accept() (net.Conn, error) {
	select {
	case conn := <-r.conns:
		return conn, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *pushReceiver) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr implements net.Listener.
func (r *pushReceiver) Addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(r.address), Port: 80} }

func (r *pushReceiver) shutDown() { _ = r.server.Close() }

// ServeHTTP responds to a call when the scheduler chooses the call.
func (r *pushReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, readErr := io.ReadAll(req.Body) // reading fails if the caller has ended the call
	p, id := r.sim, req.Header.Get("Webhook-Id")
	p.pmu.Lock()
	r.activeCalls++
	r.maxActiveCalls = max(r.maxActiveCalls, r.activeCalls)
	e, known := r.ids[id]
	p.pmu.Unlock()
	defer func() {
		p.pmu.Lock()
		defer p.pmu.Unlock()
		r.activeCalls--
	}()
	if !known {
		p.Fail(fmt.Errorf("P8: %s is called with %q, but no node began such a call", r.name, id))
		return
	}
	if r.check != nil && readErr == nil {
		if err := r.check(req, body, e); err != nil {
			p.Fail(fmt.Errorf("%s is called with %s: %w", r.name, e, err))
			return
		}
	}
	answers := make(chan func(), 1)
	t := &scheduler.Turn{Who: r.name, What: "is called", Detail: id, Proceed: func() string {
		if r.poison != nil && e == *r.poison {
			r.killCaller(id)
			return "ends its caller"
		}
		name, answer := r.chooseAnswer(w, req, e)
		answers <- answer
		return name
	}}
	p.Enqueue(t)
	select {
	case answer := <-answers:
		answer()
	case <-req.Context().Done():
		p.Remove(t)
	case <-p.ctx.Done():
		p.Remove(t)
	}
}

// killCaller kills the node that last called with the delivery id.
func (r *pushReceiver) killCaller(id string) {
	r.sim.pmu.Lock()
	n := r.callers[id]
	r.killedNodes++
	r.sim.pmu.Unlock()
	n.kill()
}

// chooseAnswer chooses the response to a call with entry e. It returns the name of the response and a function that
// sends it.
func (r *pushReceiver) chooseAnswer(w http.ResponseWriter, req *http.Request, e push.Entry) (string, func()) {
	status := func(n int) func() { return func() { w.WriteHeader(n) } }
	if r.redirects && !r.sim.FaultFree && r.rng.IntN(4) == 0 {
		return r.redirectToSelf(w)
	}
	if r.sim.FaultFree || r.rng.IntN(10) >= r.fails {
		r.sim.pmu.Lock()
		r.accepted[e] = true
		r.sim.pmu.Unlock()
		return "200", status(http.StatusOK)
	}
	switch r.rng.IntN(10) {
	case 0:
		r.sim.MarkReached("a receiver hung until the deadline")
		return "hangs", func() {
			select {
			case <-req.Context().Done():
			case <-r.sim.ctx.Done():
			}
		}
	case 1:
		r.sim.MarkReached("a receiver asked to be called later")
		return "429", func() {
			w.Header().Set("Retry-After", fmt.Sprint(1+r.rng.IntN(9)))
			w.WriteHeader(http.StatusTooManyRequests)
		}
	case 2:
		r.sim.MarkReached("a receiver redirected a call")
		return "302", func() {
			w.Header().Set("Location", "http://"+metadataAddress+"/latest/meta-data")
			w.WriteHeader(http.StatusFound)
		}
	case 3:
		r.sim.MarkReached("a receiver reset a connection")
		return "resets", func() { panic(http.ErrAbortHandler) }
	case 4:
		r.sim.MarkReached("a receiver sent more than the limit")
		return "200 and 100 KB", func() { _, _ = w.Write(make([]byte, 100<<10)) } // a body so large that the node closes the connection
	case 5:
		r.sim.MarkReached("a receiver answered slowly, byte by byte")
		return "drips", func() { r.dripAnswer(w, req) }
	case 6:
		return "200, less than it says", func() {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("{}"))
		}
	case 7:
		return "503", status(http.StatusServiceUnavailable)
	case 8:
		return "400", status(http.StatusBadRequest)
	}
	return "500", status(http.StatusInternalServerError)
}

// redirectToSelf redirects a call to a different path of the receiver, sometimes in a cycle, or sends a redirect
// without a target.
func (r *pushReceiver) redirectToSelf(w http.ResponseWriter) (string, func()) {
	status := []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}[r.rng.IntN(5)]
	target := ""
	if n := r.rng.IntN(12); n > 0 {
		target = fmt.Sprintf("/moved/%d", n)
	}
	r.sim.MarkReached("a receiver redirected a call to itself")
	return fmt.Sprintf("%d to %q", status, target), func() {
		if target != "" {
			w.Header().Set("Location", target)
		}
		w.WriteHeader(status)
	}
}

// dripAnswer sends an endless response body, one byte per second.
func (r *pushReceiver) dripAnswer(w http.ResponseWriter, req *http.Request) {
	for {
		if _, err := w.Write([]byte(" ")); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-req.Context().Done():
			return
		case <-r.sim.ctx.Done():
			return
		}
	}
}

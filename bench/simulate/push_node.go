package simulate

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/cosmos/client"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
)

// pushDelays are the delays before each attempt of a delivery.
var pushDelays = []time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second}

const pushTimeout = 4 * time.Second // timeout of a call

// A pushNode is one process of a node that calls receivers. It is built from the same components as in cmd/node, with a
// separate transport.
type pushNode struct {
	sim       *pushSimulation
	index     int
	number    int // number of this process, counted per node
	who       string
	transport *httpTransport
	store     *pushstore.Store
	engine    *delivery.Engine
	broker    *brokerNode // nil: none
	members   *memberChecker

	began     time.Time
	staysDown bool // true if the node, once killed, stays down until the last fault

	subscriptions *subscriptionNode // nil: none
	watches       *watchNode        // nil: none

	caller   *webhook.Client
	cancel   context.CancelFunc
	skew     atomic.Int64
	killed   atomic.Bool
	underway atomic.Int64 // active calls
}

func (p *pushSimulation) nodeAt(i int) *pushNode {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	return p.nodes[i]
}

// keepNodeRunning starts the i-th node, and restarts the node each time it ends.
func (p *pushSimulation) keepNodeRunning(i int) {
	p.background.Go(func() {
		for p.ctx.Err() == nil && !p.isEnding.Load() {
			n := p.newNode(i)
			if err := n.runNode(); err != nil {
				p.Fail(err)
				return
			}
			p.awaitStart(n)
		}
	})
}

func (p *pushSimulation) newNode(i int) *pushNode {
	p.pmu.Lock()
	defer p.pmu.Unlock()
	p.starts[i]++
	who := fmt.Sprintf("node-%d.%d", i, p.starts[i])
	return &pushNode{sim: p, index: i, number: p.starts[i], who: who, transport: p.newHTTPTransport(who)}
}

// rngPurpose returns the purpose of one of the node's random sources.
func (n *pushNode) rngPurpose(kind int) uint64 {
	return n.sim.purposes + uint64(kind+100*n.index+n.number) //nolint:gosec // positive
}

// runNode runs the node until it ends.
func (n *pushNode) runNode() error {
	p := n.sim
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	n.cancel = cancel
	connection := client.Connection{Endpoint: endpointOfClient(n.who, p.env.engine.Endpoint()), Key: p.env.engine.Key(), Transport: n.transport}
	db, err := client.Connect(connection)
	if err != nil {
		return fmt.Errorf("%s connects: %w", n.who, err)
	}
	defer db.Close()
	random := random.New(p.options.Seed, n.rngPurpose(600))
	now := func() time.Time { return time.Now().Add(time.Duration(n.skew.Load())) }
	n.store = pushstore.New(db, p.content, pushstore.Options{Clock: now, Random: random.Uint64, SegmentBytes: p.segments})
	n.caller = webhook.New(webhook.Options{
		AllowHTTP: true, Allow: []netip.Prefix{netip.MustParsePrefix(pushReceivers)}, Timeout: pushTimeout,
		Dial: n.dialReceiver, LookUp: p.lookUpReceiver, Clock: now,
	})
	defer n.caller.Close()
	n.members = newMemberChecker(n)
	ports := delivery.Ports{Streams: n.store, Cursors: n.store, Shards: n.store, Nodes: n.members, Receivers: p, Caller: n}
	if p.broker != nil {
		n.broker = &brokerNode{sim: p.broker, pushNode: n}
		ports.Receivers, ports.Caller = n.broker, n.broker
	}
	if p.subscriptions != nil {
		n.subscriptions = &subscriptionNode{sim: p.subscriptions, pushNode: n}
		ports.Receivers, ports.Caller = n.subscriptions, n.subscriptions
	}
	marked := 0
	if p.watches != nil {
		n.watches = &watchNode{sim: p.watches, pushNode: n}
		ports.Receivers, ports.Caller = n.watches, n.watches
		marked = 1 + 15*random.IntN(2) // small, because these simulations have small pages
	}
	n.engine = delivery.New(ports, delivery.Options{
		Incarnation: n.who, Workers: 8, Queues: len(pushDelays), Timeout: pushTimeout + time.Second, Overhead: pushTimeout,
		Grace: 3 * time.Second, Window: int64(1 + random.IntN(50_000)), Marked: marked, Clock: now, Random: random.Uint64,
		NoTakeover: n.sim.failSafe.isDisabled[n.index],
	})
	if n.broker != nil {
		n.broker.openService(now, random)
	}
	if n.subscriptions != nil {
		n.subscriptions.openServices(now)
	}
	if n.watches != nil {
		n.watches.openServices(db, now, random)
		wait := n.watches.startRelays(ctx)
		defer func() { cancel(); wait() }()
	}
	p.pmu.Lock()
	n.began = time.Now()
	p.nodes[n.index] = n
	p.pmu.Unlock()
	var worker sync.WaitGroup
	defer worker.Wait()
	defer cancel()
	if n.broker != nil {
		worker.Go(func() { n.broker.runWorker(ctx) })
	}
	err = n.engine.Run(ctx)
	p.pmu.Lock()
	if p.nodes[n.index] == n {
		p.nodes[n.index] = nil
	}
	p.pmu.Unlock()
	return err
}

// kill ends the node: later requests of the node to the store are not executed, and responses of receivers are lost.
func (n *pushNode) kill() {
	if n.killed.Swap(true) {
		return
	}
	if n.underway.Load() > 0 && !n.sim.isEnding.Load() {
		n.sim.MarkReached("a node was killed while it called")
	}
	n.transport.cutOff()
	n.cancel()
}

// Call implements [delivery.Caller].
func (n *pushNode) Call(ctx context.Context, c delivery.Call) domain.Answer {
	r := c.Receiver.Target.(*pushReceiver)
	return n.callReceiver(r, c, func(id string) (webhook.Result, error) {
		return n.caller.Send(ctx, &webhook.Delivery{
			ID: id, Attempts: c.Attempt, Subscription: r.name, Settings: &c.Receiver.Subscription, Message: &c.Entry.Message,
		})
	})
}

// callReceiver records a call of receiver r. The function call makes the call with the id of the delivery.
func (n *pushNode) callReceiver(r *pushReceiver, c delivery.Call, call func(id string) (webhook.Result, error)) domain.Answer {
	id := webhook.DeliveryID(c.Cursor, r.stream, c.Entry.Position.EntryID, c.Entry.Published)
	if n.broker != nil {
		if err := n.broker.sim.checkCaller(n, c.Cursor, entryOf(r.stream, c.Entry.Position.EntryID)); err != nil {
			n.sim.Fail(err)
		}
	}
	r.noteCall(n, id, c.Entry.Position.EntryID)
	n.underway.Add(1)
	defer n.underway.Add(-1)
	result, err := call(id)
	if err != nil || n.killed.Load() {
		return domain.Answer{Error: "the time for a call has passed"}
	}
	return result.Answer
}

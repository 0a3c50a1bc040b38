package simulate

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/bench/simulate/consumerhistory"
	"github.com/messagehub/messagehub/bench/simulate/invariants/push"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
)

// brokerRetries is the maximum number of retries of a job.
const brokerRetries = 2

// A brokerNode is the broker of a node, built from the same components as in cmd/node.
type brokerNode struct {
	*pushNode
	sim     *brokerSimulation
	service *broker.Service
}

// openService connects the broker to the store and the engine of its node.
func (n *brokerNode) openService(clock func() time.Time, random random.Source) {
	n.service = broker.New(broker.Ports{
		Parties: n.store, Streams: n.store, Cursors: n.store, Shards: n.store, Content: n.sim.content,
	}, n.sim.keys, broker.Options{
		CheckURL: n.caller.CheckURL, CheckHeaders: webhook.CheckHeaders, Clock: clock,
		Created: n.notifyCreated, Changed: n.notifyChanged, Orphaned: n.engine.Orphaned, Published: n.engine.Published, CheckStream: n.engine.CheckStream,
		IsCalling: n.engine.IsCalling, Settled: n.engine.Settled, NewID: func() string { return fmt.Sprintf("%016x", random.Uint64()) },
	})
}

// Receiver implements [delivery.Receivers].
func (n *brokerNode) Receiver(ctx context.Context, cursor domain.CursorID, _ bool) (delivery.Receiver, error) {
	callee, err := n.service.Callee(ctx, cursor)
	if err != nil {
		return delivery.Receiver{}, err
	}
	return delivery.Receiver{
		Policy: domain.BrokerPolicy(time.Second, brokerRetries), Concurrency: n.sim.receiverOf(cursor).concurrency, KeepsMarks: true, Target: callee,
	}, nil
}

// readPayload reads a large payload.
func (n *brokerNode) readPayload(ctx context.Context, c *delivery.Call) ([]byte, error) {
	r, err := n.sim.content.Open(ctx, c.Entry.PayloadAt)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func (sim *brokerSimulation) receiverOf(cursor domain.CursorID) *pushReceiver {
	sim.pmu.Lock()
	defer sim.pmu.Unlock()
	return sim.receivers[cursor.String()]
}

// Call implements [delivery.Caller].
func (n *brokerNode) Call(ctx context.Context, c delivery.Call) domain.Answer {
	to, m, at := c.Receiver.Target.(*broker.ConsumerCall), &c.Entry.Message, c.Entry.Position.EntryID
	if !c.Entry.PayloadAt.IsZero() {
		payload, err := n.readPayload(ctx, &c)
		if err != nil {
			return domain.Answer{Unread: true, Error: "the message cannot be read"}
		}
		copied := *m
		copied.Payload, m = payload, &copied
	}
	noted := n.sim.findConsumer(c.Cursor).beginCall(n, at)
	answer := n.callReceiver(n.sim.receiverOf(c.Cursor), c, func(id string) (webhook.Result, error) {
		return n.caller.Call(ctx, &webhook.ConsumerCall{
			ID: id, Attempts: c.Attempt, CallbackURL: to.CallbackURL, Token: webhook.Key(to.Token),
			Channel: to.ID.Channel().String(), Consumer: to.ID.String(), Message: at.MessageID(), Priority: at.Priority,
			ContentType: m.ContentType, Metadata: broker.MetadataOf(m), Payload: m.Payload,
		})
	})
	noted.endCall(n, answer)
	return answer
}

// A brokerConsumer is a consumer of a channel, and the calls and bundles that the consumer has received.
type brokerConsumer struct {
	*pushReceiver
	sim   *brokerSimulation
	id    domain.PartyID
	token string

	// before and answered are the numbers of entries of the channel by priority, when the first PUT of the consumer
	// began and when it succeeded. Each is nil until that time. Guarded by pushSimulation.pmu.
	before, answered map[int]int64
	seen             seenBundles // guarded by pushSimulation.pmu

	history consumerhistory.Recorder
	pending []*notedCall // guarded by pushSimulation.pmu
}

// addConsumer adds a consumer to the configuration. A manager puts the consumer later.
func (sim *brokerSimulation) addConsumer(to *brokerChannel) error {
	i := len(to.consumers)
	id, err := to.id.Consumers().Parse(fmt.Sprint("consumer-", i))
	if err != nil {
		return err
	}
	c := &brokerConsumer{sim: sim, id: id, seen: seenBundles{bundles: make(map[string]*seenBundle)}, token: fmt.Sprintf("token-of-%s-%s", to.id, id)}
	c.pushReceiver = sim.newReceiver(id.Cursor(), id.Stream(), fmt.Sprintf("%s-%s", to.id, id), len(sim.receivers))
	c.filters, c.check = false, c.checkCall
	c.fails = []int{0, 1, 5, 9}[sim.rng.IntN(4)]
	to.consumers = append(to.consumers, c)
	return nil
}

// callbackURL returns the URL of the consumer's receiver.
func (c *brokerConsumer) callbackURL() string { return "http://" + c.name + ".example/hook" }

// checkCall compares a call with the message that was sent.
func (c *brokerConsumer) checkCall(req *http.Request, body []byte, e push.Entry) error {
	h := req.Header
	for name, want := range map[string]string{
		webhook.ChannelHeader: c.id.Channel().String(), webhook.ConsumerHeader: c.id.String(), webhook.TokenHeader: c.token,
		webhook.MessageHeader: domain.EntryID{Priority: e.Priority, Number: e.Number}.MessageID(), webhook.PriorityHeader: fmt.Sprint(e.Priority),
	} {
		if got := h.Get(name); got != want {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if err := c.checkPosition(e); err != nil {
		return err
	}
	return c.sim.compareWithSent(e, &seenMessage{
		payload: string(body), contentType: h.Get("Content-Type"), metadata: map[string]string{traceHeader: h.Get(traceHeader)},
	})
}

// checkPosition returns an error if a message is older than the first PUT of the consumer.
func (c *brokerConsumer) checkPosition(e push.Entry) error {
	c.sim.pmu.Lock()
	defer c.sim.pmu.Unlock()
	if e.Number < c.before[e.Priority] || c.before == nil {
		return fmt.Errorf("P18: the message was accepted before the consumer was created")
	}
	return nil
}

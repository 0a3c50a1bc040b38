package broker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A fetchWorld contains a channel with one consumer, the nodes that call the consumer, and their stores. It requires a
// synctest bubble.
type fetchWorld struct {
	*testing.T
	ports    broker.Ports
	nodes    repository.Nodes
	stops    []func() // functions that stop the started nodes
	channel  domain.PartyID
	consumer domain.PartyID

	mu     sync.Mutex             // guards status and takes once a node is running
	status int                    // status with which the consumer answers calls
	takes  time.Duration          // how long each call takes
	begun  chan domain.EntryID    // receives the entry of each call when the call begins
	counts map[domain.EntryID]int // how often each message was received from begun
}

// A plainSealer does not encrypt.
type plainSealer struct{}

func (plainSealer) SealFor(_, secret string) string                   { return secret }
func (plainSealer) OpenFor(_, sealed string) (secret string, _ error) { return sealed, nil }

// The credentials of a fetchWorld.
var (
	adminCredentials    = &broker.Credentials{IsAdmin: true}
	consumerCredentials = &broker.Credentials{ConsumerToken: "consumer-token"}
	producerCredentials = &broker.Credentials{ChannelToken: "channel-token", ProducerID: "p", ProducerToken: "producer-token"}
)

// inFetchWorld runs a test with a new fetchWorld, in a synctest bubble.
func inFetchWorld(t *testing.T, test func(w *fetchWorld)) {
	synctest.Test(t, func(t *testing.T) {
		cursors := memory.NewCursors(time.Now)
		w := &fetchWorld{
			T: t, nodes: memory.NewNodes(time.Now), status: 200, counts: make(map[domain.EntryID]int), begun: make(chan domain.EntryID, 10_000),
			ports: broker.Ports{Parties: memory.NewParties(), Streams: memory.NewStreams(21*24*time.Hour, time.Now), Cursors: cursors, Shards: cursors},
		}
		var err error
		w.channel, err = domain.Channels.Parse("orders")
		require.NoError(t, err)
		w.consumer, err = w.channel.Consumers().Parse("billing")
		require.NoError(t, err)
		producer, err := domain.Producers.Parse("p")
		require.NoError(t, err)
		s := broker.New(w.ports, plainSealer{}, broker.Options{})
		for id, d := range map[domain.PartyID]broker.Draft{
			producer:  {Token: new("producer-token")},
			w.channel: {Token: new("channel-token")},
		} {
			_, _, err = s.PutParty(t.Context(), adminCredentials, id, d, broker.Condition{})
			require.NoError(t, err)
		}
		_, _, err = s.PutParty(t.Context(), adminCredentials, w.consumer, broker.Draft{Token: new("consumer-token"), CallbackURL: "https://billing.example/"}, broker.Condition{})
		require.NoError(t, err)
		defer func() {
			for _, stop := range w.stops {
				stop()
			}
		}()
		test(w)
	})
}

// Receiver implements [delivery.Receivers].
func (w *fetchWorld) Receiver(context.Context, domain.CursorID, bool) (delivery.Receiver, error) {
	return delivery.Receiver{Policy: domain.BrokerPolicy(5*time.Second, 5), KeepsMarks: true}, nil
}

// Call implements [delivery.Caller].
func (w *fetchWorld) Call(ctx context.Context, c delivery.Call) domain.Answer {
	w.begun <- c.Entry.Position.EntryID
	w.mu.Lock()
	takes := w.takes
	w.mu.Unlock()
	select {
	case <-time.After(takes):
		w.mu.Lock()
		defer w.mu.Unlock()
		return domain.Answer{Status: w.status}
	case <-ctx.Done():
		return domain.Answer{Error: "it ended"}
	}
}

// setAnswers sets the status and the duration of the consumer's later answers.
func (w *fetchWorld) setAnswers(status int, takes time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.takes = status, takes
}

// countCalls returns how many times the consumer was called with each message.
func (w *fetchWorld) countCalls() map[domain.EntryID]int {
	synctest.Wait()
	for len(w.begun) > 0 {
		w.counts[<-w.begun]++
	}
	return w.counts
}

// A fetchNode is one node of the broker.
type fetchNode struct {
	*broker.Service
	engine *delivery.Engine
	stop   func()
}

// startNode starts a node, which runs until it is stopped or the test ends.
func (w *fetchWorld) startNode(name string, opts delivery.Options) *fetchNode {
	opts.Incarnation = name
	engine := delivery.New(delivery.Ports{
		Streams: w.ports.Streams, Cursors: w.ports.Cursors, Shards: w.ports.Shards, Nodes: w.nodes, Receivers: w, Caller: w,
	}, opts)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = engine.Run(ctx)
	}()
	n := &fetchNode{engine: engine, stop: func() { cancel(); <-ended }}
	n.Service = broker.New(w.ports, plainSealer{}, broker.Options{
		Created: engine.Created, Changed: engine.Changed, Published: engine.Published, CheckStream: engine.CheckStream, IsCalling: engine.IsCalling, Settled: engine.Settled, Orphaned: engine.Orphaned,
	})
	w.stops = append(w.stops, n.stop)
	return n
}

// broadcast sends count messages of the given priority through a node.
func (w *fetchWorld) broadcast(n *fetchNode, count, priority int) {
	w.Helper()
	for range count {
		_, _, err := n.Broadcast(w.Context(), producerCredentials, w.channel, &broker.Broadcast{Priority: priority, Payload: []byte(`{}`)})
		require.NoError(w, err)
	}
}

// Package brokerrig runs the broker of a single node without a network, to measure the request
// units and the memory that messages cost.
package brokerrig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A Rig is the broker of a node. Its account is an embedded engine in memory, which charges only
// the requests of the broker. Calls of the consumers succeed immediately, or hang.
type Rig struct {
	account *embedded.Engine
	db      *client.Database
	store   *pushstore.Store
	service *broker.Service
	channel domain.PartyID

	consumers int
	cursors   *settledCursors
	calls     calls

	engine *delivery.Engine
	end    context.CancelFunc // stops the engine; nil if the engine does not run
	life   sync.WaitGroup
}

var admin = &broker.Credentials{IsAdmin: true}

// Options configure a Rig.
type Options struct {
	Consumers int  // number of consumers of the channel
	Hangs     bool // calls of consumers hang until Close

	Latency *embedded.Latency // latency of the account; nil means no latency
}

// The limits for concurrent calls: in total, and to one consumer.
const (
	callsAtATime = 64
	callsToEach  = 16
)

var payload = bytes.Repeat([]byte("x"), 256)

// Open returns a Rig whose engine does not run yet.
func Open(ctx context.Context, o Options) (r *Rig, err error) {
	r = &Rig{consumers: o.Consumers, calls: calls{hang: o.Hangs, begun: make(chan struct{}, callsAtATime)}}
	if r.account, err = embedded.Open(embedded.Options{Latency: o.Latency, Pessimistic: true}); err != nil { //nolint:contextcheck // opening an engine in memory takes no time
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	r.db, err = client.Connect(client.Connection{Endpoint: r.account.Endpoint(), Key: r.account.Key(), Transport: r.account.Transport()})
	if err != nil {
		return nil, err
	}
	content := memory.NewContent()
	r.store = pushstore.New(r.db, content, pushstore.Options{})
	if _, err = r.store.Provision(ctx, client.ProvisionOptions{}); err != nil {
		return nil, err
	}
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	if err != nil {
		return nil, err
	}
	r.cursors = &settledCursors{Cursors: r.store, delivered: make(map[domain.CursorID]int64), settled: make(chan struct{}, 1)}
	r.engine = delivery.New(
		delivery.Ports{Streams: r.store, Cursors: r.cursors, Shards: r.store, Receivers: r, Caller: &r.calls},
		delivery.Options{CheckInterval: time.Hour, Workers: callsAtATime, Grace: time.Millisecond},
	)
	r.service = broker.New(broker.Ports{Parties: r.store, Streams: r.store, Cursors: r.store, Shards: r.store, Content: content}, keys, broker.Options{
		Created: r.engine.Created, Changed: r.engine.Changed, Published: r.engine.Published, CheckStream: r.engine.CheckStream, CacheTime: time.Hour,
	})
	return r, r.createParties(ctx, o.Consumers)
}

func (r *Rig) createParties(ctx context.Context, consumers int) (err error) {
	token := "token"
	put := func(list domain.PartyList, name, callback string) (domain.PartyID, error) {
		id, err := list.Parse(name)
		if err == nil {
			_, _, err = r.service.PutParty(ctx, admin, id, broker.Draft{Token: &token, CallbackURL: callback}, broker.Condition{})
		}
		return id, err
	}
	if _, err = put(domain.Producers, "bench", ""); err != nil {
		return err
	}
	if r.channel, err = put(domain.Channels, "bench", ""); err != nil {
		return err
	}
	for i := range consumers {
		if _, err = put(r.channel.Consumers(), fmt.Sprint("consumer-", i), "http://consumer.example/hook"); err != nil {
			return err
		}
	}
	return nil
}

// Run makes the engine call the consumers until Close.
func (r *Rig) Run(ctx context.Context) {
	ctx, r.end = context.WithCancel(context.WithoutCancel(ctx))
	r.life.Go(func() { _ = r.engine.Run(ctx) }) // Run ends with ctx
}

// Close ends the engine and removes all data.
func (r *Rig) Close() error {
	if r.end != nil {
		r.end()
		r.life.Wait()
	}
	if r.db != nil {
		r.db.Close()
	}
	return r.account.Close()
}

// Receiver implements [delivery.Receivers].
func (r *Rig) Receiver(context.Context, domain.CursorID, bool) (delivery.Receiver, error) {
	return delivery.Receiver{Policy: domain.BrokerPolicy(5*time.Second, 5), Concurrency: callsToEach, KeepsMarks: true}, nil
}

// Broadcast sends n messages, up to atATime concurrently, and returns when their deliveries are
// stored.
func (r *Rig) Broadcast(ctx context.Context, n, atATime int) error {
	want := r.cursors.sumSettled() + int64(n*r.consumers)
	creds := &broker.Credentials{ChannelToken: "token", ProducerID: "bench", ProducerToken: "token"}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atATime)
	for range n {
		g.Go(func() error {
			_, _, err := r.service.Broadcast(gctx, creds, r.channel, &broker.Broadcast{ContentType: "text/plain", Payload: payload})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for r.cursors.sumSettled() < want {
		select {
		case <-r.cursors.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

type calls struct {
	hang  bool
	begun chan struct{} // receives an element for each hanging call
}

// Call implements [delivery.Caller].
func (c *calls) Call(ctx context.Context, _ delivery.Call) domain.Answer {
	began := time.Now()
	if c.hang {
		c.begun <- struct{}{}
		<-ctx.Done()
		return domain.Answer{Began: began, Took: time.Since(began), Error: "the consumer hangs"}
	}
	return domain.Answer{Began: began, Took: time.Since(began), Status: http.StatusNoContent}
}

// settledCursors is a store of cursors that counts the stored deliveries.
type settledCursors struct {
	repository.Cursors
	settled chan struct{} // receives an element after each settlement

	mu        sync.Mutex
	delivered map[domain.CursorID]int64
}

// Settle implements [repository.Cursors].
func (c *settledCursors) Settle(ctx context.Context, id domain.CursorID, v repository.CursorVersion, s domain.Settlement) (repository.CursorVersion, error) {
	next, err := c.Cursors.Settle(ctx, id, v, s)
	if err == nil {
		c.mu.Lock()
		c.delivered[id] = s.Standing.Counters.Delivered
		c.mu.Unlock()
		select {
		case c.settled <- struct{}{}:
		default:
		}
	}
	return next, err
}

func (c *settledCursors) sumSettled() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.delivered {
		n += d
	}
	return n
}

// RequestUnits returns the sum of the charges of all requests.
func (r *Rig) RequestUnits() float64 { return r.account.RequestUnits() }

// Append stores n messages for the consumers.
func (r *Rig) Append(ctx context.Context, n int) error {
	const batch = 60 // maximum number of messages in an append
	messages := make([]domain.Message, batch)
	for i := range messages {
		messages[i] = domain.Message{ContentType: "text/plain", Payload: payload}
	}
	for ; n > 0; n -= batch {
		if _, err := r.store.Append(ctx, r.channel.Stream(), messages[:min(batch, n)]); err != nil {
			return err
		}
	}
	return nil
}

// AwaitCalls waits until the engine makes as many concurrent calls to each consumer as the limit
// allows.
func (r *Rig) AwaitCalls(ctx context.Context) error {
	for range r.consumers * callsToEach {
		select {
		case <-r.calls.begun:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

package node

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/outcome"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/receiverlist"
	"github.com/messagehub/messagehub/domain/replay"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// A push delivers events and notices to receivers. If the account lacks the
// containers that it needs, the node runs without it.
type push struct {
	client        *webhook.Client
	tester        *webhook.Client // client for test calls; only its timeout differs from client's
	engine        *delivery.Engine
	subscriptions *subscribe.Service
	replays       *replay.Service
	events        *publish.Service
	outcomes      *outcome.Service
	deliveries    *inspect.Service
	streams       repository.Streams
	definitions   repository.Definitions
	broker        *broker.Service
	watches       *watches
	receivers     *receiverlist.Service
	objects       *publish.ObjectRelay // objects is nil if changes of objects are not published

	fault error // why the node does not call receivers; nil if it does
}

// settleTime is how much longer the engine waits for a call than the client, so
// that a call that times out ends with the client's error.
const settleTime = 5 * time.Second

// testTimeout is the time limit of a test call. It is shorter than the deadline
// of the HTTP request that causes the test call.
const testTimeout = 20 * time.Second

// openPush opens the part of the node that calls receivers. It creates missing
// containers if a key permits this. If the containers cannot be used, it
// returns a push with a fault instead of an error. own is the node's URL.
// objects is the ledger's store, or nil if the node runs without objects.
func openPush(ctx context.Context, cfg *config.Config, opts *Options, s *nodeStore, own string, objects *objectstore.Store, metrics prometheus.Registerer) (*push, error) {
	if opts.PullOnly {
		return &push{}, nil
	}
	documents := pushstore.New(s.db, s.content, pushstore.Options{
		Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: metrics,
		StoreTraces: opts.Traces != nil,
	})
	if err := provisionPush(ctx, cfg, documents); err != nil {
		if !client.IsContainerFault(err) {
			return nil, err
		}
		opts.Logger.Warn("the hub serves no subscriptions and no events; run messagehub provision, and restart the hub", "error", err)
		return &push{fault: err}, nil
	}
	keys, err := pushKeys(cfg)
	if err != nil {
		return nil, err
	}
	clock := opts.Clock
	if clock == nil {
		clock = time.Now
	}
	calls := webhook.Options{
		Allow: cfg.Push.Allow, AllowHTTP: cfg.Push.InsecureHTTP, Timeout: cfg.Push.Timeout,
		Dial: opts.Dial, LookUp: opts.LookUp, Clock: opts.Clock,
	}
	p := &push{client: webhook.New(calls)}
	calls.Timeout = min(cmp.Or(calls.Timeout, testTimeout), testTimeout)
	p.tester = webhook.New(calls)
	streams := hub.NewDataStreams(documents, s)
	tracer := tracing.New(opts.Traces, "push")
	ports := delivery.Ports{
		Streams: streams, Cursors: documents, Shards: documents,
		Caller: newMeteredCaller(&httpCaller{p.client, s.content, clock, cfg.Broker.TokenHeader, tracer}, metrics),
	}
	subscribers := newReceivers(cfg, streams, &subscribe.Dequeues{Requests: s, Definitions: documents}, keys, clock, metrics)
	consumers := &callees{others: subscribers, policy: domain.BrokerPolicy(cfg.Broker.RetryDelay, cfg.Broker.MaxRetry)}
	ports.Receivers = consumers
	if !cfg.Embedded() { // a data folder has only one node
		ports.Nodes = documents
	}
	if opts.wrapCaller != nil {
		ports.Caller = opts.wrapCaller(ports.Caller)
	}
	o := engineOptions(cfg)
	o.For, o.Sweep = opts.pushFor, documents.Sweep
	if opts.Grace > 0 {
		o.Grace = max(opts.Grace-settleTime, time.Millisecond) // the remaining grace period is reserved for storing outcomes
	}
	o.Clock, o.Random, o.Logger = opts.Clock, opts.Random, opts.Logger
	p.engine = delivery.New(ports, o)
	countWarned(p.engine, metrics)
	p.broker = p.openBroker(cfg, broker.Ports{
		Parties: documents, Streams: streams, Cursors: documents, Shards: documents, Content: s.content,
	}, sealerOf(keys), clock)
	consumers.broker = p.broker
	p.events = publish.New(streams, p.engine.Published)
	if objects != nil && objects.Topic() != nil {
		p.objects = publish.NewObjectRelay(objects.Topic(), p.events, publish.ObjectRelayOptions{Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger})
	}
	if p.watches, err = p.openWatches(cfg, opts, s, documents, objects, streams, own); err != nil {
		return nil, err
	}
	consumers.watches = p.watches
	p.replays = replay.New(replay.Ports{Definitions: documents, Streams: streams, Cursors: documents, Shards: documents}, replay.Options{Changed: p.engine.Changed})
	p.outcomes = outcome.New(outcome.Ports{
		Definitions: documents, Cursors: documents, Streams: streams, Settled: p.engine.Settled, Clock: clock,
	})
	p.subscriptions = subscribe.New(subscribe.Ports{Definitions: documents, Streams: streams, Cursors: documents, Dequeues: s}, keys, subscribe.Options{
		HasObjects: cfg.Objects.Topic, CheckURL: p.client.CheckURL, CheckSecret: checkSecret, CheckHeaders: checkHeaders,
		Created: p.engine.Created, Changed: p.engine.Changed, Grace: cfg.Push.SecretGrace, Clock: opts.Clock,
	})
	p.streams, p.definitions = streams, documents
	p.receivers = receiverlist.New(receiverlist.Ports{Definitions: documents, Cursors: documents, Shards: documents, Streams: streams, Parties: documents}, clock)
	p.deliveries = inspect.New(inspect.Ports{
		Definitions: documents, Cursors: documents, Streams: streams, Receivers: subscribers, Caller: &httpCaller{p.tester, s.content, clock, cfg.Broker.TokenHeader, tracer},
	}, inspect.Options{Clock: opts.Clock})
	return p, nil
}

// engineOptions returns the delivery engine's options that operators can
// configure.
func engineOptions(cfg *config.Config) delivery.Options {
	return delivery.Options{
		Workers: cfg.Push.Workers, Queues: len(cfg.Push.Delays), Concurrency: cfg.Push.Concurrency,
		Timeout:    cfg.Push.Timeout + settleTime,
		NoTakeover: cfg.Broker.FailSafe == config.FailSafeOff || cfg.Broker.FailSafe == config.FailSafeWorker,
	}
}

// provisionPush creates missing containers if a key permits this. Then it
// checks all containers that calls of receivers need.
func provisionPush(ctx context.Context, cfg *config.Config, documents *pushstore.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if cfg.Embedded() || cfg.Cosmos.Key != "" {
		if _, err := documents.Provision(ctx, client.ProvisionOptions{Repair: cfg.Embedded()}); err != nil {
			return fmt.Errorf("check the containers: %w", err)
		}
	}
	return documents.CheckContainers(ctx) // fails as well if a container could not be created
}

// policyOf returns the retry policy for failed deliveries.
func policyOf(p *config.Push) domain.Policy {
	return domain.QueuePolicy(p.Delays, cmp.Or(p.Attempts, len(p.Delays)))
}

// notifySaved makes the engine call the receivers that wait for an actor's
// data.
func (p *push) notifySaved(actor domain.ActorID) {
	if p.engine != nil {
		p.engine.CheckStream(domain.DataStream(actor))
	}
}

// run calls receivers until ctx ends and the calls in progress are complete. It
// also publishes changes to watches, and changes of objects to their topic.
func (p *push) run(ctx context.Context) {
	if p.engine == nil {
		return
	}
	publishing, stop := context.WithCancel(ctx)
	var relay sync.WaitGroup
	relay.Go(func() { _ = p.watches.relay.Run(publishing) }) // Run of the relay returns no error
	if p.objects != nil {
		relay.Go(func() { p.objects.Run(publishing) })
	}
	_ = p.engine.Run(ctx) // Run of the engine returns no error
	stop()
	relay.Wait()
}

// close closes idle connections to receivers.
func (p *push) close() {
	if p != nil && p.client != nil {
		p.client.Close()
		p.tester.Close()
	}
}

// warnings returns the warning of /readyz that the node does not call
// receivers.
func (p *push) warnings() []api.FailedCheck {
	if p.fault == nil {
		return nil
	}
	return []api.FailedCheck{{
		Name:   "push-containers",
		Reason: "the store has no fit containers for subscriptions and events, so their routes answer 503 not-provisioned: " + strings.ReplaceAll(p.fault.Error(), "\n", "; "),
		Remedy: "run messagehub provision, and restart the hub",
	}}
}

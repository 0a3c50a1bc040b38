package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/jsonpatch"
	"github.com/messagehub/messagehub/api/servicebus/objectevents"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/inventory"
)

// An objects records the objects that object stores report to the node. If the
// account lacks the container for objects, the node runs without it.
type objects struct {
	ledger   *ledger.Service
	doubts   *ledger.Doubts         // doubts is nil if no object stores are configured
	stored   repository.Objects     // stored stores events of object stores and the hub's own reports
	receiver *objectevents.Receiver // receiver is nil without a queue for object events
	sweeps   *ledger.Sweeper
	changes  *objectstore.Store // reads the changes for watches of objects and for the topic of changes

	fault error // why the node runs without objects; nil if it runs with them
}

// openObjects opens the node's ledger. It creates a missing container if the
// account's key permits this. If the container cannot be used, it returns an
// objects with a fault instead of an error.
func openObjects(ctx context.Context, cfg *config.Config, opts *Options, s *nodeStore, metrics prometheus.Registerer) (*objects, error) {
	if opts.PullOnly {
		return &objects{}, nil
	}
	documents, err := openObjectStore(ctx, cfg, opts, s, metrics)
	if err != nil {
		if !client.IsContainerFault(err) {
			return nil, err
		}
		opts.Logger.Warn("the hub keeps no objects; run messagehub provision, and restart the hub", "error", err)
		return &objects{fault: err}, nil
	}
	o := &objects{changes: documents}
	ports := ledger.Ports{Objects: documents, Jobs: documents}
	options := ledger.Options{
		Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, JSONPatch: jsonpatch.Apply, ReadParquet: inventory.Parquet,
		LinkTime: cfg.Objects.LinkTime, LinkLimit: int64(cfg.Objects.LinkLimit),
		HasClock: func(bucket string) bool { // true for embedded stores, which report the time of this node's clock
			return cfg.EmbeddedBlob() && (bucket == contentBucket(cfg) || bucket == exchangeBucket(cfg))
		},
	}
	ports.Objects = ledger.WatchContents(documents, contentBucket(cfg), opts.contents, opts.Logger)
	o.stored = ports.Objects
	stores, err := openSources(cfg, opts, s)
	if err != nil {
		return nil, err
	}
	o.doubts = ledger.NewDoubts(ports.Objects, stores, options)
	ports.Objects, ports.Source = o.doubts, stores
	o.sweeps = ledger.NewSweeper(documents, reportShards(metrics), options)
	o.ledger = ledger.New(ports, options)
	return o, nil
}

// openObjectStore opens the store of the ledger's documents.
func openObjectStore(ctx context.Context, cfg *config.Config, opts *Options, s *nodeStore, metrics prometheus.Registerer) (*objectstore.Store, error) {
	documents := objectstore.New(s.db, objectstore.Options{
		Shards: cfg.Objects.Shards, Retention: domain.ObjectRetention(cfg.Objects.Retention), Retentions: ownRetentions(cfg), Topic: cfg.Objects.Topic, Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: metrics,
	})
	return documents, provisionObjects(ctx, cfg, documents)
}

// run executes the ledger's jobs, resolves doubts, and sweeps, until ctx ends.
func (o *objects) run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	if o.doubts != nil {
		loops.Go(func() { o.doubts.Run(ctx) })
	}
	if o.sweeps != nil {
		loops.Go(func() { o.sweeps.Run(ctx) })
	}
	if o.ledger != nil {
		o.ledger.RunJobs(ctx)
	}
}

// runReports stores reports of the embedded content stores until ctx ends.
func (o *objects) runReports(ctx context.Context, reports *contentReports) {
	if o.stored != nil && reports != nil {
		reports.run(ctx, o.stored)
	}
}

// receive creates a receiver of object events, which reads the configured queue
// on bus.
func (o *objects) receive(cfg *config.Config, opts *Options, bus *bus, metrics prometheus.Registerer) {
	if o.ledger == nil || cfg.Objects.Queue == "" {
		return
	}
	o.receiver = objectevents.New(objectevents.Options{
		Ledger: o.ledger, Open: bus.open, Queue: cfg.Objects.Queue, Body: int(cfg.Limits.RequestBody), Events: cfg.Limits.Events,
		Grace: opts.Grace, Logger: opts.Logger, Registerer: metrics, Traces: opts.Traces, Clock: opts.Clock, Random: opts.randomFraction,
	})
}

// receiveEvents receives object events until ctx ends. Then it stores the
// events that it has already received.
func (o *objects) receiveEvents(ctx context.Context) {
	if o.receiver != nil {
		o.receiver.Run(ctx)
	}
}

// provisionObjects creates the container if it is missing and a key permits
// this, and then checks the container.
func provisionObjects(ctx context.Context, cfg *config.Config, documents *objectstore.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if cfg.Embedded() || cfg.Cosmos.Key != "" {
		if _, err := documents.Provision(ctx, client.ProvisionOptions{Repair: cfg.Embedded()}); err != nil {
			return fmt.Errorf("check the containers: %w", err)
		}
	}
	return documents.CheckContainers(ctx) // also reports a container that Provision could not create
}

// warnings returns the warning of /readyz that the node runs without objects.
func (o *objects) warnings() []api.FailedCheck {
	if o == nil || o.fault == nil {
		return nil
	}
	return []api.FailedCheck{{
		Name:   "object-containers",
		Reason: "the store has no fit container for objects, so their routes answer 503 not-provisioned: " + strings.ReplaceAll(o.fault.Error(), "\n", "; "),
		Remedy: "run messagehub provision, and restart the hub",
	}}
}

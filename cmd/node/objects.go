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
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// objects are the part of a node that keeps what stores report about their objects. A node whose
// account lacks its container runs without one.
type objects struct {
	ledger *ledger.Service
	doubts *ledger.Doubts // nil without stores
	sweeps *ledger.Sweeper

	fault error // why there is nothing of the above
}

// openObjects opens the ledger of objects over the store of a node. It creates the container if it is
// missing and a key allows that. Without it the objects have a fault, and no error.
func openObjects(ctx context.Context, cfg *config.Config, opts *Options, s *store, metrics prometheus.Registerer) (*objects, error) {
	if opts.PullOnly {
		return &objects{}, nil
	}
	documents := objectstore.New(s.db, objectstore.Options{
		Shards: cfg.Objects.Shards, Retention: domain.ObjectRetention(cfg.Objects.Retention), Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: metrics,
	})
	if err := provisionObjects(ctx, cfg, documents); err != nil {
		if !client.IsContainerFault(err) {
			return nil, err
		}
		opts.Logger.Warn("the hub keeps no objects; run messagehub provision, and restart the hub", "error", err)
		return &objects{fault: err}, nil
	}
	o := &objects{}
	ports := ledger.Ports{Objects: documents, Jobs: documents}
	options := ledger.Options{
		Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, JSONPatch: jsonpatch.Apply, LinkTime: cfg.Objects.LinkTime, LinkLimit: int64(cfg.Objects.LinkLimit),
	}
	stores, err := openSources(cfg, opts, s)
	if err != nil {
		return nil, err
	}
	if len(stores) > 0 {
		ports.Source = stores
		o.doubts = ledger.WatchDoubts(ports.Objects, stores, options)
		ports.Objects = o.doubts
	}
	o.sweeps = ledger.NewSweeper(documents, reportShards(metrics), options)
	o.ledger = ledger.New(ports, options)
	return o, nil
}

// run works on jobs, settles doubts, and sweeps, until ctx ends.
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

// provisionObjects creates the container if it is missing and a key allows that, and checks it.
func provisionObjects(ctx context.Context, cfg *config.Config, documents *objectstore.Store) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if cfg.Embedded() || cfg.Cosmos.Key != "" {
		if _, err := documents.Provision(ctx, client.ProvisionOptions{Repair: cfg.Embedded()}); err != nil {
			return fmt.Errorf("check the containers: %w", err)
		}
	}
	return documents.CheckContainers(ctx) // it reports what could not be created, too
}

// warnings returns what /readyz reports of a node without objects: it serves everything else.
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

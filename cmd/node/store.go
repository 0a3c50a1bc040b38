package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/level"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/memory"
)

// A nodeStore opens and closes a node's stores, and implements the repository
// ports with them.
type nodeStore struct {
	*cosmos.Repository
	db         *client.Database
	engine     *embedded.Engine // engine is nil if the documents are on Azure
	dir        *content.Dir     // dir is nil if the content is on Azure or in memory
	level      *level.Store
	content    repository.Content // stores the hub's own content
	exchange   *sharedStorage     // stores content exchanged with the domains
	groups     []domain.Group
	frozen     *Frozen        // frozen is nil unless the data folder was restored with --freeze
	diskFailed <-chan error   // receives an error when the disk becomes unwritable
	closers    []func() error // functions that close the stores, in the order in which they were opened
}

// close closes the stores in the reverse of the order in which they were
// opened.
func (s *nodeStore) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// openStore opens the stores that cfg names. Each has responded at least once
// before openStore returns.
func openStore(ctx context.Context, cfg *config.Config, opts *Options, metrics prometheus.Registerer) (_ *nodeStore, err error) {
	s := &nodeStore{groups: cfg.Groups().All()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.claimFolder(cfg, opts); err != nil {
		return nil, err
	}
	connection, err := s.connection(cfg, opts) //nolint:contextcheck // opening a folder cannot be cancelled
	if err != nil {
		return nil, err
	}
	if err := s.openContent(ctx, cfg, opts); err != nil {
		return nil, err
	}
	db, err := client.Connect(connection)
	if err != nil {
		return nil, err
	}
	s.db = db
	s.closers = append(s.closers, func() error { db.Close(); return nil })
	sweepUnits := float64(cfg.Cosmos.SweepUnits)
	if cfg.Embedded() {
		sweepUnits = -1 // the embedded engine has no throughput limit that a sweep could exceed
	}
	s.Repository = cosmos.New(db, s.content, cosmos.Options{
		Groups:    cfg.Groups(),
		Exclusive: cfg.Embedded(),
		Ordering:  cfg.Ordering,
		FreezeNew: s.frozen != nil,

		TailEvents:            cfg.Cosmos.TailEvents,
		KeepCabinets:          cfg.Cosmos.TailEvents == 0,
		DrawerCapacity:        opts.DrawerCapacity,
		MaxUnfilteredCabinets: opts.Unfiltered,
		SweepEvery:            opts.SweepEvery,
		SweepUnits:            sweepUnits,
		IndexBytes:            int(cfg.Cosmos.IDMemory),

		StoreTraces: opts.Traces != nil,

		Retention:  cmp.Or(cfg.Retention, -1), // forever
		Shared:     s.exchange,
		Clock:      opts.Clock,
		Random:     opts.Random,
		Logger:     opts.Logger,
		Registerer: metrics,
	})
	return s, s.start(ctx, cfg, opts, metrics)
}

// claimFolder locks the data folder and opens its identity. If a restore was
// interrupted, claimFolder first completes it.
func (s *nodeStore) claimFolder(cfg *config.Config, opts *Options) error {
	if cfg.InMemory || !cfg.UsesFolder() {
		return nil
	}
	lock, err := lockFolder(cfg.Data)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, lock.Close)
	if err := backup.Finish(cfg.Data); err != nil {
		return err
	}
	if s.frozen, err = readFrozen(cfg); err != nil {
		return err
	}
	if err := protectFolder(cfg.Data, opts.Logger); err != nil {
		return err
	}
	opts.folder, err = openIdentity(cfg, opts)
	return err
}

// connection returns options for connecting to the store of documents. It first
// opens the engine, if it is embedded.
func (s *nodeStore) connection(cfg *config.Config, opts *Options) (client.Connection, error) {
	if cfg.Embedded() {
		dir := ""
		if !cfg.InMemory {
			dir = filepath.Join(cfg.Data, cosmosFolder)
		}
		engine, err := embedded.Open(embedded.Options{Dir: dir, Claim: opts.folder.Claim(cosmosFolder), Version: opts.Version, Clock: opts.Clock})
		if err != nil {
			return client.Connection{}, err
		}
		s.engine = engine
		s.closers = append(s.closers, engine.Close)
		if err := opts.folder.List(cosmosFolder); err != nil {
			return client.Connection{}, folderFault(cfg.Data, err)
		}
		var transport policy.Transporter = engine.Transport()
		if opts.WrapTransport != nil {
			transport = opts.WrapTransport(transport)
		}
		watched := newDiskWatcher(transport, cfg.Data)
		s.diskFailed = watched.failed
		return client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: watched, Tracing: azureTraces(opts.Traces)}, nil
	}
	return accountConnection(cfg, opts)
}

// accountConnection returns options for connecting to the configured Cosmos
// account.
func accountConnection(cfg *config.Config, opts *Options) (client.Connection, error) {
	c := client.Connection{
		Endpoint:    cfg.Cosmos.Endpoint,
		Key:         cfg.Cosmos.Key.Reveal(),
		Database:    cfg.Cosmos.Database,
		Consistency: cfg.Cosmos.Consistency,
		Transport:   opts.toDocuments(),
		Tracing:     azureTraces(opts.Traces),
	}
	if c.Key != "" {
		return c, nil
	}
	credential, err := opts.identity()
	c.Credential = credential
	return c, err
}

// openContent opens the stores for content that is too large for documents: the
// hub's own content, and the content that it exchanges with domains.
func (s *nodeStore) openContent(ctx context.Context, cfg *config.Config, opts *Options) (err error) {
	if s.exchange, err = openExchange(ctx, cfg, opts); err != nil {
		return err
	}
	s.closers = append(s.closers, s.exchange.close)
	switch {
	case cfg.InMemory:
		s.content = opts.reports.wrapContent(memory.NewContent())
		return nil
	case !cfg.EmbeddedBlob():
		s.content, err = azureBlobs(ctx, cfg, opts, cfg.Blob.ContentContainer())
		return err
	}
	dir, err := content.OpenClaimed(filepath.Join(cfg.Data, contentFolder), opts.folder.Claim(contentFolder))
	if err != nil {
		return err
	}
	s.dir, s.content = dir, opts.reports.wrapContent(dir)
	s.closers = append(s.closers, dir.Close)
	if err := opts.folder.List(contentFolder); err != nil {
		return folderFault(cfg.Data, err)
	}
	return nil
}

// start creates missing containers if a key permits this, and checks all
// containers. It fails if this version does not support the level of the store,
// or if the configured groups differ from those in the store. In an embedded
// engine, it also corrects the properties of containers.
func (s *nodeStore) start(ctx context.Context, cfg *config.Config, opts *Options, metrics prometheus.Registerer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if cfg.Embedded() || cfg.Cosmos.Key != "" {
		all, err := s.Provision(ctx, client.ProvisionOptions{Repair: cfg.Embedded()})
		if err != nil {
			return fmt.Errorf("check the containers: %w", err)
		}
		for i := range all {
			if all[i].State == client.StateMissing { // CheckContainers below reports all other states
				return fmt.Errorf("check the containers: %w", client.Unfinished(all))
			}
		}
	}
	if err := s.CheckContainers(ctx); err != nil {
		return fmt.Errorf("check the containers: %w", err)
	}
	if s.level, err = openLevel(ctx, s.db, s.Repository, opts, metrics); err != nil {
		return err
	}
	return s.AdoptGroups(ctx)
}

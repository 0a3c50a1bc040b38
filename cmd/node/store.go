package node

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// A store is the three ports and their life.
type store struct {
	events  repository.DataAvailable
	bundles repository.Bundles
	content repository.Content
	ready   func(context.Context) error
	run     func(context.Context) error
	closers []func() error // in the order in which they were opened
}

func (s *store) close() error {
	if s == nil {
		return nil
	}
	return nil
}

func openStore(_ context.Context, cfg *config.Config, opts *Options, _ prometheus.Registerer) (*store, error) {
	m := memory.New(memory.Options{Groups: cfg.Groups(), Clock: opts.Clock})
	return &store{
		events: m, bundles: m, content: m,
		ready: func(context.Context) error { return nil },
		run:   func(ctx context.Context) error { <-ctx.Done(); return nil },
	}, nil
}

// Package ledger has the use cases of objects: what stores report about their objects, and the state
// that follows from it.
//
//	events of stores ─▶ Service ─▶ repository.Objects ─▶ current and historical rows
//	stores           ─▶            (the rules are in package domain)
//
// The hub's own contents are objects, too: [WatchContents] tells the hub of those that were deleted.
//
// It promises nothing that a store of objects does not: see [repository.Objects]. After a failure,
// what had an outcome is stored, and everything else may be repeated.
package ledger

import (
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/repository"
)

// Ports are what a Service works on.
type Ports struct {
	Objects repository.Objects
}

// Options of a Service. The zero value is valid.
type Options struct {
	Clock  func() time.Time // default time.Now
	Logger *slog.Logger     // default: none
}

// A Service is safe for concurrent use.
type Service struct {
	Ports
	opts Options
}

// New returns a Service. It starts nothing.
func New(ports Ports, opts Options) *Service {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{Ports: ports, opts: opts}
}

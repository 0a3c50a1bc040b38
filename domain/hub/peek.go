package hub

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A PeekRequest is an actor's wish for its next bundle.
type PeekRequest struct {
	Actor    domain.ActorID
	Groups   []domain.Group  // to choose from; none means all of them
	BundleID domain.BundleID // the id that the actor suggests; zero means any
	Format   domain.Format   // the format that the actor insists on; "" means any, for a new bundle JSON
	Version  string          // of the format; "" means 1.0
	OpenOnly bool            // open no new bundle: without an open one there is no data
}

// A Peeked is a bundle in the hands of its actor.
type Peeked struct {
	domain.Bundle
	Backlog int64          // visible unacknowledged events in the groups asked for, the bundle's included
	Behind  domain.Backlog // what waits behind the bundle in those groups

	events  iter.Seq2[repository.StoredEvent, error]
	content repository.Content
}

// ErrBundleIDInUse reports that the actor has, or had, another bundle with the id
// that it suggests.
var ErrBundleIDInUse = repository.ErrBundleIDInUse

// ErrOutpaced reports that other requests of the same actor were faster, again and
// again. It is of kind Busy.
var ErrOutpaced = domain.Errorf(domain.Busy, "peek: lost %d races in a row against other requests of the same actor", lostRaces)

// lostRaces is how often a Peek starts over because another one of the same
// actor was faster. Each loss means that the other one made progress.
const lostRaces = 16

// Peek returns the actor's open bundle or, if none is open, opens the next one.
// It fails with domain.ErrNoData if nothing waits, and with Conflict if another
// bundle id or format is open than the one asked for, or the id is used up.
func (h *Hub) Peek(ctx context.Context, req PeekRequest) (*Peeked, error) {
	if len(req.Groups) == 0 {
		req.Groups = h.opts.Groups.All()
	}
	idInUse := false
	for range lostRaces {
		next, err := h.events.NextUnacknowledged(ctx, req.Actor, req.Groups)
		if err != nil {
			return nil, err
		}
		if next.Open != nil {
			if err := isWhatIsAskedFor(next.Open, req); err != nil {
				return nil, err
			}
			return &Peeked{*next.Open, next.Backlog, next.Run.Behind(next.Open.Count), next.Run.Events(ctx), h.content}, nil
		}
		if req.OpenOnly {
			return nil, domain.ErrNoData
		}
		peeked, err := h.open(ctx, req, next)
		switch {
		case err == nil:
			return peeked, nil
		case domain.KindOf(err) != domain.Conflict:
			return nil, err
		case errors.Is(err, repository.ErrBundleIDInUse):
			if idInUse {
				return nil, err
			}
			idInUse = true // perhaps by a Peek that asked for the same and was faster: look once more
		}
	}
	return nil, fmt.Errorf("actor %s: %w", req.Actor, ErrOutpaced)
}

// open makes a new bundle of what waits next.
func (h *Hub) open(ctx context.Context, req PeekRequest, next repository.Next) (*Peeked, error) {
	bundle := domain.Bundle{
		ID:      req.BundleID,
		Group:   next.Run.Group(),
		Cabinet: next.Run.Cabinet(),
		Content: h.contentMode(next.Run.Cabinet().Origin),
		Format:  req.Format,
		Version: req.Version,
	}
	if bundle.ID == (domain.BundleID{}) {
		bundle.ID = h.opts.NewID()
	}
	if bundle.Format == "" {
		bundle.Format = domain.JSON
	}
	if bundle.Version == "" {
		bundle.Version = "1.0"
	}
	var filler domain.Filler
	measure := newMeasure(bundle.ID, bundle.Content)
	var events pile
	for e, err := range next.Run.Events(ctx) {
		if err != nil {
			return nil, err
		}
		if !filler.Take(&e.Event, e.Sequence) {
			break
		}
		measure.add(&e)
		events.add(&e)
		if filler.Full() {
			break
		}
	}
	filler.Fill(&bundle)
	bundle.Body = measure.body()
	bundle, err := h.bundles.Add(ctx, bundle, next.Run)
	if err != nil {
		return nil, err
	}
	return &Peeked{bundle, next.Backlog, next.Run.Behind(bundle.Count), events.all, h.content}, nil
}

// Bundle returns the open bundle id of actor, and opens none. It fails with
// NotFound if that bundle is not open for the actor, for whatever reason.
func (h *Hub) Bundle(ctx context.Context, actor domain.ActorID, id domain.BundleID) (*Peeked, error) {
	bundle, run, err := h.bundles.Find(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	behind := run.Behind(bundle.Count)
	return &Peeked{bundle, int64(bundle.Count) + behind.Events, behind, run.Events(ctx), h.content}, nil
}

// isWhatIsAskedFor refuses to hand out an open bundle in place of another.
func isWhatIsAskedFor(open *domain.Bundle, req PeekRequest) error {
	if req.BundleID != (domain.BundleID{}) && req.BundleID != open.ID {
		return domain.Errorf(domain.Conflict, "bundle id: bundle %s is open; peek it without another id, or dequeue it first", open.ID)
	}
	if req.Format != "" && req.Format != open.Format {
		return domain.Errorf(domain.Conflict, "format: bundle %s is open as %s; peek it in that format, or dequeue it first", open.ID, open.Format)
	}
	return nil
}

// Dequeue confirms that actor holds bundle id safely and returns the bundle, with
// what waits behind it. Its events are never handed out again. It fails with NotFound if that bundle is
// not open for the actor, for whatever reason.
func (h *Hub) Dequeue(ctx context.Context, actor domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	return h.bundles.Acknowledge(ctx, actor, id)
}

// Queues tells what waits for actor in each group, in the order of their names.
func (h *Hub) Queues(ctx context.Context, actor domain.ActorID) ([]repository.Queue, error) {
	return h.events.Queues(ctx, actor)
}

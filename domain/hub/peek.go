package hub

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A PeekRequest is an actor's request for its next bundle.
type PeekRequest struct {
	Actor    domain.ActorID
	Groups   []domain.Group  // groups to choose from; empty means all
	BundleID domain.BundleID // bundle id that the actor suggests; zero lets the hub choose
	Format   domain.Format   // format that the actor requires; "" accepts any, and opens new bundles as JSON
	Version  string          // version of the format; "" means 1.0
	OpenOnly bool            // do not open a new bundle; if none is open, Peek fails with domain.ErrNoData
	By       time.Time       // deadline for the reply to a content request; zero means 30 s after the call

	// Pause, if not nil, is called when Peek starts waiting for a domain; resume is called when the wait ends.
	// Meanwhile, the caller can release resources.
	Pause func() (resume func(context.Context) error)

	// Opened, if not nil, is called after Peek has opened a bundle and before it requests content. saves are the spans
	// in which the events were saved; see [repository.Run].
	Opened func(saves ...domain.TraceContext)

	// Reserve, if not nil, is called before Peek reads more than ManyEvents events for a new bundle. events is an
	// estimate of their number. If Reserve fails, Peek fails.
	Reserve func(ctx context.Context, events int) error
}

// ManyEvents is how many events a bundle may have so that it needs little memory.
const ManyEvents = 1500

// maxLinks is the maximum number of spans that Peek passes to PeekRequest.Opened.
const maxLinks = 64

// peekWithin is the default time limit of a Peek, including a content request.
const peekWithin = 30 * time.Second

// A PeekedBundle is an open bundle that Peek returns to its actor.
type PeekedBundle struct {
	domain.Bundle
	Waiting int64          // unacknowledged, visible events in the requested groups, including those of the bundle
	Behind  domain.Backlog // backlog of the requested groups without the bundle

	// GrowMemory, if not nil, is called before the body reads n more bytes ahead. If it returns false, the body reads
	// less ahead.
	GrowMemory func(n int64) bool

	events iter.Seq2[repository.StoredEvent, error]
	list   *eventList // nil means that the body reads the events itself
	hub    *Hub
}

// ErrBundleIDInUse reports that the suggested bundle id belongs, or belonged, to a different bundle of the actor.
var ErrBundleIDInUse = repository.ErrBundleIDInUse

// ErrNoMailbox is the domain.ErrNoData for an actor for whom no event was ever saved.
var ErrNoMailbox = repository.ErrNoMailbox

// ErrOutpaced reports that a Peek lost every attempt to a concurrent request of the same actor. Its kind is Busy.
var ErrOutpaced = domain.Errorf(domain.Busy, "peek: lost %d races in a row against other requests of the same actor", lostRaces)

// lostRaces is how many attempts a Peek may lose to concurrent Peeks of the same actor, each of which made progress.
const lostRaces = 16

// Peek returns the actor's open bundle. If none is open, it opens the next one. It fails with domain.ErrNoData if no
// events wait, with Conflict if the open bundle does not have the requested id or format or the id was used before, and
// with an *UnansweredError if the domain has not produced the content.
func (h *Hub) Peek(ctx context.Context, req PeekRequest) (*PeekedBundle, error) {
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
			if err := checkRequested(next.Open, req); err != nil {
				return nil, err
			}
		} else if req.OpenOnly {
			return nil, domain.ErrNoData
		}
		peeked, err := h.peekNext(ctx, req, next)
		switch {
		case err == nil:
			return peeked, nil
		case domain.KindOf(err) != domain.Conflict:
			return nil, err
		case errors.Is(err, repository.ErrBundleIDInUse):
			if idInUse {
				return nil, err
			}
			idInUse = true // a concurrent Peek with the same id may have opened the bundle; try once more
		}
	}
	return nil, fmt.Errorf("actor %s: %w", req.Actor, ErrOutpaced)
}

// peekNext returns the open bundle with its content. If none is open, it opens a bundle with the next events.
func (h *Hub) peekNext(ctx context.Context, req PeekRequest, next repository.Next) (*PeekedBundle, error) {
	if next.Open == nil {
		return h.openBundle(ctx, req, next)
	}
	behind := next.Run.BacklogAfter(next.Open.Count)
	bundle, err := h.withContent(ctx, req, *next.Open, next.Run, nil)
	if err != nil {
		return nil, err
	}
	return h.newPeeked(bundle, next.Waiting, behind, next.Run.Events(ctx)), nil
}

// newPeeked returns an open bundle as a PeekedBundle.
func (h *Hub) newPeeked(bundle domain.Bundle, waiting int64, behind domain.Backlog, events iter.Seq2[repository.StoredEvent, error]) *PeekedBundle {
	return &PeekedBundle{Bundle: bundle, Waiting: waiting, Behind: behind, events: events, hub: h}
}

// withContent returns an open bundle after its content is available. list contains the ids of the events; if it is nil,
// they are read when needed.
func (h *Hub) withContent(ctx context.Context, req PeekRequest, bundle domain.Bundle, run repository.Run, list []byte) (domain.Bundle, error) {
	if !bundle.LacksContent() {
		return bundle, nil
	}
	return h.requestContent(ctx, req, bundle, run, list)
}

// openBundle opens a bundle with the next events.
func (h *Hub) openBundle(ctx context.Context, req PeekRequest, next repository.Next) (*PeekedBundle, error) {
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
	measure := newBodyDigest(bundle.ID, bundle.Content)
	events := &eventList{}
	var list []byte // retain only the ids, because many Peeks may wait for domains at the same time
	n, weight := 0, domain.Weight(0)
	for e, err := range next.Run.Events(ctx) {
		if err != nil {
			return nil, err
		}
		if n, weight = n+1, weight.Add(e.Weight); n == ManyEvents && req.Reserve != nil {
			if err := req.Reserve(ctx, estimateEvents(n, weight, next.Waiting)); err != nil {
				return nil, err
			}
		}
		if !filler.Take(&e.Event, e.Sequence) {
			break
		}
		if bundle.Content == domain.Request {
			list = appendID(list, e.ID)
		} else {
			measure.add(&e)
			events.add(&e)
		}
		if filler.Full() {
			break
		}
	}
	filler.Fill(&bundle)
	bundle.Peeked = domain.TraceContextOf(ctx)
	if bundle.Content == domain.Request {
		bundle.List = listName(next.Run.Folder(), &bundle)
	} else {
		bundle.Body = measure.measuredBody()
	}
	bundle, err := h.bundles.Add(ctx, bundle, next.Run)
	if err != nil {
		return nil, err
	}
	if req.Opened != nil {
		req.Opened(next.Run.Saves(bundle.Count, maxLinks)...)
	}
	behind := next.Run.BacklogAfter(bundle.Count)
	if bundle, err = h.withContent(ctx, req, bundle, next.Run, list); err != nil {
		return nil, err
	}
	peeked := h.newPeeked(bundle, next.Waiting, behind, nil)
	peeked.list = events
	return peeked, nil
}

// estimateEvents estimates the number of events in a bundle, given the weight of its first n events and the number of
// waiting events.
func estimateEvents(n int, weight domain.Weight, waiting int64) int {
	return int(min(int64(n)*int64(domain.MaxBundleWeight)/max(1, int64(weight)), max(waiting, int64(n))))
}

// Bundle returns the open bundle with the id req.BundleID, of any group. It opens no bundle. It fails with NotFound if
// the actor has no such open bundle.
func (h *Hub) Bundle(ctx context.Context, req PeekRequest) (*PeekedBundle, error) {
	bundle, run, err := h.bundles.Find(ctx, req.Actor, req.BundleID)
	if err != nil {
		return nil, err
	}
	behind := run.BacklogAfter(bundle.Count)
	bundle, err = h.withContent(ctx, req, bundle, run, nil)
	if domain.KindOf(err) == domain.Conflict { // the bundle was closed after Find, and only an operator can reopen it
		err = domain.Errorf(domain.NotFound, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return h.newPeeked(bundle, int64(bundle.Count)+behind.Events, behind, run.Events(ctx)), nil
}

// checkRequested returns an error if the open bundle is not the one that req asks for.
func checkRequested(open *domain.Bundle, req PeekRequest) error {
	if req.BundleID != (domain.BundleID{}) && req.BundleID != open.ID {
		return domain.Errorf(domain.Conflict, "bundle id: bundle %s is open; peek it without another id, or dequeue it first", open.ID)
	}
	if req.Format != "" && req.Format != open.Format {
		return domain.Errorf(domain.Conflict, "format: bundle %s is open as %s; peek it in that format, or dequeue it first", open.ID, open.Format)
	}
	return nil
}

// Dequeue acknowledges a bundle, so its events are not delivered again. It returns the bundle and the remaining
// backlog. It fails with NotFound if the actor has no such open bundle.
func (h *Hub) Dequeue(ctx context.Context, actor domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	closed, err := h.bundles.Acknowledge(ctx, actor, id)
	if closed.HasNotice && h.opts.NoticeRelay != nil {
		h.opts.NoticeRelay.Enqueue(actor) // also after an error, because the bundle may have been dequeued
	}
	return closed, err
}

// Queues returns the backlog of actor in each group, sorted by group name.
func (h *Hub) Queues(ctx context.Context, actor domain.ActorID) ([]repository.Queue, error) {
	return h.events.Queues(ctx, actor)
}

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
	Groups   []domain.Group  // the groups to choose from; empty: all groups
	BundleID domain.BundleID // the id that the actor suggests; zero: the hub chooses an id
	Format   domain.Format   // the format that the actor insists on; "" means any, for a new bundle JSON
	Version  string          // version of the format; "" means 1.0
	OpenOnly bool            // open no new bundle; without an open bundle, Peek fails with domain.ErrNoData
	By       time.Time       // deadline for the reply of a domain that is asked for content; zero: 30 s after the call

	// Pause, if given, is called when Peek begins to wait for a domain. The function that it
	// returns is called when the wait ends. The caller can release resources while Peek waits.
	Pause func() (resume func(context.Context) error)

	// Opened, if given, is called when Peek has opened a bundle, before its domain is asked for
	// content, with the spans in which its events were saved; see [repository.Run].
	Opened func(saves ...domain.TraceContext)

	// Reserve, if given, is called before Peek reads more than ManyEvents events of a new bundle,
	// with an estimate of the number of its events. If Reserve fails, Peek fails.
	Reserve func(ctx context.Context, events int) error
}

// ManyEvents is the number of events up to which a bundle needs little memory.
const ManyEvents = 1500

// maxLinks is the maximum number of spans that Opened gets.
const maxLinks = 64

// peekWithin is the default time limit of a Peek, including the request to a domain.
const peekWithin = 30 * time.Second

// A PeekedBundle is a bundle that a Peek returns to its actor.
type PeekedBundle struct {
	domain.Bundle
	Waiting int64          // visible events in the requested groups that were not acknowledged, including the events of the bundle
	Behind  domain.Backlog // the backlog in these groups without the bundle

	// GrowMemory, if given, is called during a Read of the body, before the body reads n more
	// bytes of payloads ahead. If it returns false, the body reads less ahead.
	GrowMemory func(n int64) bool

	events iter.Seq2[repository.StoredEvent, error]
	list   *eventList // nil: the body reads the events
	hub    *Hub
}

// ErrBundleIDInUse reports that the actor has, or had, another bundle with the id
// that it suggests.
var ErrBundleIDInUse = repository.ErrBundleIDInUse

// ErrNoMailbox is the domain.ErrNoData of an actor for whom nothing was ever saved.
var ErrNoMailbox = repository.ErrNoMailbox

// ErrOutpaced reports that other requests of the same actor were faster in every attempt. Its
// kind is Busy.
var ErrOutpaced = domain.Errorf(domain.Busy, "peek: lost %d races in a row against other requests of the same actor", lostRaces)

// lostRaces is the maximum number of attempts of a Peek that lose to another Peek of the same
// actor. In each lost attempt, the other Peek made progress.
const lostRaces = 16

// Peek returns the actor's open bundle or, if no bundle is open, opens the next one. It fails with
// domain.ErrNoData if no events wait, with Conflict if the open bundle has another id or format
// than requested, or the requested id was used before, and with an *UnansweredError if the
// domain of the open bundle has not produced its content.
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
			idInUse = true // a concurrent Peek with the same id may have opened the bundle, so retry
		}
	}
	return nil, fmt.Errorf("actor %s: %w", req.Actor, ErrOutpaced)
}

// peekNext returns the open bundle with its content. If no bundle is open, it opens a bundle of the
// next events.
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

// newPeeked returns a bundle with the events of its body.
func (h *Hub) newPeeked(bundle domain.Bundle, waiting int64, behind domain.Backlog, events iter.Seq2[repository.StoredEvent, error]) *PeekedBundle {
	return &PeekedBundle{Bundle: bundle, Waiting: waiting, Behind: behind, events: events, hub: h}
}

// withContent returns an open bundle once its content can be read. list has the ids of its
// events; nil: they are read when needed.
func (h *Hub) withContent(ctx context.Context, req PeekRequest, bundle domain.Bundle, run repository.Run, list []byte) (domain.Bundle, error) {
	if !bundle.LacksContent() {
		return bundle, nil
	}
	return h.requestContent(ctx, req, bundle, run, list)
}

// openBundle opens a new bundle of the next events.
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
	var list []byte // ids only, because many Peeks may wait for domains at the same time
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

// estimateEvents estimates the number of events in a bundle, from the weight of its first n
// events and the number of waiting events.
func estimateEvents(n int, weight domain.Weight, waiting int64) int {
	return int(min(int64(n)*int64(domain.MaxBundleWeight)/max(1, int64(weight)), max(waiting, int64(n))))
}

// Bundle returns the open bundle with the BundleID of req, of any group. It opens no bundle. It
// fails with NotFound if the actor has no such open bundle.
func (h *Hub) Bundle(ctx context.Context, req PeekRequest) (*PeekedBundle, error) {
	bundle, run, err := h.bundles.Find(ctx, req.Actor, req.BundleID)
	if err != nil {
		return nil, err
	}
	behind := run.BacklogAfter(bundle.Count)
	bundle, err = h.withContent(ctx, req, bundle, run, nil)
	if domain.KindOf(err) == domain.Conflict { // the bundle was closed since Find; only an operator can reopen it
		err = domain.Errorf(domain.NotFound, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return h.newPeeked(bundle, int64(bundle.Count)+behind.Events, behind, run.Events(ctx)), nil
}

// checkRequested returns an error if an open bundle is not the requested one.
func checkRequested(open *domain.Bundle, req PeekRequest) error {
	if req.BundleID != (domain.BundleID{}) && req.BundleID != open.ID {
		return domain.Errorf(domain.Conflict, "bundle id: bundle %s is open; peek it without another id, or dequeue it first", open.ID)
	}
	if req.Format != "" && req.Format != open.Format {
		return domain.Errorf(domain.Conflict, "format: bundle %s is open as %s; peek it in that format, or dequeue it first", open.ID, open.Format)
	}
	return nil
}

// Dequeue acknowledges bundle id of actor, and returns the bundle with the backlog after it.
// Its events are not delivered again. It fails with NotFound if the actor has no such open
// bundle.
func (h *Hub) Dequeue(ctx context.Context, actor domain.ActorID, id domain.BundleID) (repository.Acknowledged, error) {
	closed, err := h.bundles.Acknowledge(ctx, actor, id)
	if closed.HasNotice && h.opts.NoticeRelay != nil {
		h.opts.NoticeRelay.Enqueue(actor) // after a failure too: the bundle may have been dequeued
	}
	return closed, err
}

// Queues returns the backlog of actor in each group, in the order of the groups' names.
func (h *Hub) Queues(ctx context.Context, actor domain.ActorID) ([]repository.Queue, error) {
	return h.events.Queues(ctx, actor)
}

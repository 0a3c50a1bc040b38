// Package hub is the pull side of the message hub as its users know it: domains
// send events ([Hub.Ingest]), an actor fetches the next bundle ([Hub.Peek]) and
// confirms it ([Hub.Dequeue]). An [Operator] helps a queue that is stuck, and a
// [Checker] tells whether what is stored is sound.
//
// It joins the rules of package domain with the ports of package repository and
// adds what neither can say alone: which events of a request are sound, what a
// Peek does when another Peek was faster, and what the body of a bundle is made
// of. It keeps nothing but who listens for data, so any number of nodes may run it
// over one store, and a node that dies leaves nothing of its own behind.
package hub

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Hub serves domains and actors. It is safe for concurrent use.
type Hub struct {
	events  repository.DataAvailable
	bundles repository.Bundles
	content repository.Content
	opts    Options

	listeners listeners
	looks     sync.WaitGroup // of Listeners, at the watermark
	fetches   *contentFetches
	opens     chan struct{} // one element for each read ahead of its turn, in all bodies
}

// Options of a Hub. The zero value is that of the energy market.
type Options struct {
	Groups   domain.Groups                        // default: domain.DefaultGroups
	Content  map[domain.Origin]domain.ContentMode // default: manifest for every origin
	NewID    func() domain.BundleID               // default: random version 4 UUIDs
	Parallel int                                  // recipients of one Ingest that are saved at the same time; default 8

	// For domains whose content mode is Request; without a Requester they are not
	// asked, and their actors wait.
	Requester  Requester
	Exchange   repository.Exchange
	Answers    repository.Answers
	MaxContent int64    // bytes; default 64 MB
	Courier    *Courier // is told of every notice that a Dequeue has left; nil: nobody is
	Logger     *slog.Logger

	Missing func(MissingContent) // is called when a content is found to be missing, and must not block; default: nothing is called

	Random func() uint64 // for jitter; default: the system's

	Saved func(domain.ActorID) // is called after events of an actor were saved, and must not block; default: nothing is called

	Listeners         int                     // with a place, at the same time; default 10,000. Actors without a mailbox have a tenth of them
	ListenersPerActor int                     // with a place; default 8. As many may wait for the content of a bundle
	LookAgain         func(int) time.Duration // how long a Listener waits before it looks for the n-th time, from 0, what other nodes have saved; default 2 s to 10 s
}

// New returns a Hub over the three ports. Whoever gives it a Requester closes it.
func New(events repository.DataAvailable, bundles repository.Bundles, content repository.Content, opts Options) *Hub {
	if len(opts.Groups.All()) == 0 {
		opts.Groups = domain.DefaultGroups()
	}
	if opts.NewID == nil {
		opts.NewID = randomID
	}
	if opts.Parallel <= 0 {
		opts.Parallel = 8
	}
	if opts.Listeners <= 0 {
		opts.Listeners = 10_000
	}
	if opts.ListenersPerActor <= 0 {
		opts.ListenersPerActor = 8
	}
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	if opts.LookAgain == nil {
		opts.LookAgain = func(n int) time.Duration { return withJitter(lookAgain(n), opts.Random) }
	}
	if opts.Saved == nil {
		opts.Saved = func(domain.ActorID) {}
	}
	if opts.Missing == nil {
		opts.Missing = func(MissingContent) {}
	}
	if opts.MaxContent <= 0 {
		opts.MaxContent = 64 << 20
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hub{events: events, bundles: bundles, content: content, opts: opts, fetches: newContentFetches(), opens: make(chan struct{}, maxAheadOpens)}
}

// Close ends the asking of domains and waits for its end. What was not answered is
// asked for again by the next Peek.
func (h *Hub) Close() {
	h.fetches.close()
	h.looks.Wait()
}

// Groups returns the groups that the hub knows.
func (h *Hub) Groups() domain.Groups { return h.opts.Groups }

// contentMode returns how the data of origin reaches the actor.
func (h *Hub) contentMode(origin domain.Origin) domain.ContentMode {
	if mode, ok := h.opts.Content[origin]; ok {
		return mode
	}
	return domain.Manifest
}

func randomID() domain.BundleID { return domain.BundleID(uuid.New()) }

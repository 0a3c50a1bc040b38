// Package hub has the use cases of the pull side of the message hub: domains send events
// ([Hub.Ingest]), an actor fetches the next bundle ([Hub.Peek]) and confirms it
// ([Hub.Dequeue]). An [Operator] acts on a queue that is stuck, and a [Checker] verifies the
// stored data.
//
// It connects the rules of package domain with the ports of package repository, and adds the
// rules that involve both: which events of a request are valid, how a Peek continues after a
// concurrent Peek won, and how the body of a bundle is composed. Its only state in memory are the
// Listeners and the fetches of content. So any number of nodes may run it over one store, and a
// node that dies leaves no state behind.
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
	looks     sync.WaitGroup // reads of the watermark by Listeners
	fetches   *contentFetches
	opens     chan struct{} // one element for each span that is being read ahead, in all bodies
}

// Options of a Hub. The zero value has the defaults for the energy market.
type Options struct {
	Groups   domain.Groups                        // default: domain.DefaultGroups
	Content  map[domain.Origin]domain.ContentMode // default: manifest for every origin
	NewID    func() domain.BundleID               // default: random version 4 UUIDs
	Parallel int                                  // recipients of one Ingest that are saved at the same time; default 8

	// The next three fields are for domains whose content mode is Request. Without a Requester,
	// the bundles of these domains get no content, and their actors wait.
	Requester   Requester
	Exchange    repository.Exchange
	Answers     repository.Answers
	MaxContent  int64        // maximum number of bytes of a content; default 64 MB
	NoticeRelay *NoticeRelay // is notified of the notices of each Dequeue; nil: other nodes deliver them
	Logger      *slog.Logger

	Missing func(MissingContent) // called when content is found to be missing; must not block; default: not called

	Random func() uint64 // source of random numbers for jitter; default: math/rand/v2

	Saved func(domain.ActorID) // called after events of an actor were saved; must not block; default: not called

	Listeners         int                     // limit for the Listeners that have a place; default 10,000. Actors without a mailbox get up to a tenth of these
	ListenersPerActor int                     // limit for the Listeners of one actor that have a place; default 8. Also the limit for the Peeks that wait for the content of one bundle
	LookAgain         func(int) time.Duration // returns the pause before look n of a Listener for events that other nodes saved; n begins at 0; default 2 s to 10 s
}

// New returns a Hub over the three ports. A Hub with a Requester has to be closed.
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
		opts.LookAgain = func(n int) time.Duration { return withJitter(recheckDelay(n), opts.Random) }
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

// Close cancels the fetches of content, and waits until they have ended. After a cancelled fetch,
// the next Peek of the bundle asks the domain again.
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

// Package hub has the use cases of the pull side of the message hub: domains send events
// ([Hub.Ingest]), an actor fetches the next bundle ([Hub.Peek]) and confirms it
// ([Hub.Dequeue]). An [Operator] acts on a queue that is stuck, and a [Checker] verifies the
// stored data.
//
// It connects the rules of package domain with the ports of package repository, and adds the
// rules that involve both: which events of a request are valid, how a Peek continues after a
// concurrent Peek won, and how the body of a bundle is composed. It keeps only temporary state in
// memory, such as the Listeners and the fetches of content. So any number of nodes may run it over
// one store, and a node that dies leaves no state behind.
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
	looks     sync.WaitGroup // running reads of watermarks for Listeners
	fetches   *contentFetches
	opens     chan struct{} // contains one element per span that any body is reading ahead
}

// Options configure a Hub. The zero value selects the defaults of the energy market.
type Options struct {
	Groups   domain.Groups                        // default: domain.DefaultGroups
	Content  map[domain.Origin]domain.ContentMode // content mode of each origin; default: manifest
	NewID    func() domain.BundleID               // returns the id for a new bundle; default: a random UUID, version 4
	Parallel int                                  // maximum number of recipients for which one Ingest saves at the same time; default 8

	// Requester, Exchange and MaxContent are for domains with content mode Request. Without a Requester, the bundles of
	// these domains get no content, and their actors wait.
	Requester   Requester
	Exchange    repository.Exchange
	Answers     repository.Answers
	MaxContent  int64        // maximum size of a content in bytes; default 64 MB
	NoticeRelay *NoticeRelay // delivers the notices of each Dequeue; if nil, other nodes must deliver them
	Logger      *slog.Logger

	Missing func(MissingContent) // called when content is missing; must not block; may be nil

	Random func() uint64 // source of random numbers for jitter; default: math/rand/v2

	Saved func(domain.ActorID) // called after events were saved for an actor; must not block; may be nil

	Listeners         int                     // maximum number of waiting Listeners; default 10,000. Actors without a mailbox can use only a tenth
	ListenersPerActor int                     // maximum number of waiting Listeners for one actor, and of waiting Peeks for one bundle; default 8
	LookAgain         func(int) time.Duration // returns the pause before look n for events that other nodes saved; n starts at 0; default 2 s to 10 s
}

// New returns a Hub that uses the three stores. A Hub with a Requester must be closed.
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

// Close cancels all content fetches and waits until they have ended. After that, the next Peek of a bundle without
// content asks the domain again.
func (h *Hub) Close() {
	h.fetches.close()
	h.looks.Wait()
}

// Groups returns the groups that the hub knows.
func (h *Hub) Groups() domain.Groups { return h.opts.Groups }

// contentMode returns the content mode of an origin.
func (h *Hub) contentMode(origin domain.Origin) domain.ContentMode {
	if mode, ok := h.opts.Content[origin]; ok {
		return mode
	}
	return domain.Manifest
}

func randomID() domain.BundleID { return domain.BundleID(uuid.New()) }

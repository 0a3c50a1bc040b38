package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Options of a Store. With the zero value, the store has the groups of the energy market.
type Options struct {
	DrawerCapacity int              // events in a drawer; default 10,000
	Clock          func() time.Time // default time.Now
	Groups         domain.Groups    // default domain.DefaultGroups
	Ordering       domain.Ordering  // default domain.ByCabinet
	Retention      time.Duration    // retention of closed bundles that are watched; default unlimited. Unwatched bundles are always retained
}

// drawersPerRun is the limit for the number of drawers in a run for a new bundle.
const drawersPerRun = 6

// A Store implements all ports of the pull side, by which recipients fetch bundles. It is safe for
// concurrent use.
type Store struct {
	*Content // payloads, under names that begin with payloads/, and the objects of callers

	opts Options

	mu         sync.Mutex // guards the fields below and everything that they refer to
	recipients map[domain.ActorID]*storedRecipient
	made       int // number of objects that were created for payloads

	deadLetterActions []repository.DeadLetterAction // the oldest first; the ID is the index
}

var (
	_ repository.DataAvailable = (*Store)(nil)
	_ repository.Bundles       = (*Store)(nil)
	_ repository.Content       = (*Store)(nil)
	_ repository.Admin         = (*Store)(nil)
	_ repository.Answers       = (*Store)(nil)
	_ repository.Outbox        = (*Store)(nil)

	_ repository.DequeueRequests = (*Store)(nil)
	_ repository.BundleWatches   = (*Store)(nil)
)

// New returns an empty Store.
func New(opts Options) *Store {
	if opts.DrawerCapacity <= 0 {
		opts.DrawerCapacity = 10_000
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if len(opts.Groups.All()) == 0 {
		opts.Groups = domain.DefaultGroups()
	}
	return &Store{
		Content:    NewContent(),
		opts:       opts,
		recipients: make(map[domain.ActorID]*storedRecipient),
	}
}

type storedRecipient struct {
	received map[domain.EventID]domain.Digest
	last     domain.Sequence // the last number that was assigned to an event
	cabinets map[domain.CabinetKey]*storedCabinet
	gates    map[domain.Group]*storedGate
	used     map[domain.BundleID]bool // ids of all bundles, open or closed
	bundles  map[domain.BundleID]*bundleRecord
	frozen   bool
	records  []repository.Record // the oldest first
	outbox   []domain.Notice     // the oldest first

	dequeueRequests map[domain.SubscriptionID]bool
	watched         map[domain.BundleID]int64 // watched bundles, with the versions of their last changes
	expiring        map[domain.BundleID]expiringBundle
}

// An expiringBundle is a watched bundle that was closed, with the time of its removal.
type expiringBundle struct {
	bundle *domain.Bundle
	at     time.Time
}

type storedCabinet struct {
	key          domain.CabinetKey
	group        domain.Group
	events       []repository.StoredEvent                // events are only appended
	acknowledged int                                     // number of acknowledged events, which are the first events
	lost         map[domain.Sequence]bool                // events that can no longer be read; see Lose
	saves        map[domain.Sequence]domain.TraceContext // spans of the Saves, by the numbers of events
}

type storedGate struct {
	generation int
	open       *domain.Bundle // the open bundle, with the oldest unacknowledged events of its cabinet; nil: none
	requested  []domain.Group // groups of the Peek that opened the bundle
	closed     []closedBundle // closed bundles, the first one closed first

	failingSince time.Time // time at which the domain first failed to produce the content of the open bundle
	lastPeek     time.Time // time of the last Peek that opened a bundle
	lastDequeue  time.Time
}

// A closedBundle is a bundle that a replay can open again.
type closedBundle struct {
	bundle    *domain.Bundle
	requested []domain.Group
}

// recipientOf returns the data of a recipient, and adds empty data for a new recipient.
func (s *Store) recipientOf(id domain.ActorID) *storedRecipient {
	r, ok := s.recipients[id]
	if !ok {
		r = &storedRecipient{
			received: make(map[domain.EventID]domain.Digest),
			cabinets: make(map[domain.CabinetKey]*storedCabinet),
			gates:    make(map[domain.Group]*storedGate),
			used:     make(map[domain.BundleID]bool),
			bundles:  make(map[domain.BundleID]*bundleRecord),

			dequeueRequests: make(map[domain.SubscriptionID]bool), watched: make(map[domain.BundleID]int64),
			expiring: make(map[domain.BundleID]expiringBundle),
		}
		s.recipients[id] = r
	}
	return r
}

func (r *storedRecipient) ensureCabinet(key domain.CabinetKey, group domain.Group) *storedCabinet {
	c, ok := r.cabinets[key]
	if !ok {
		c = &storedCabinet{key: key, group: group, saves: make(map[domain.Sequence]domain.TraceContext)}
		r.cabinets[key] = c
	}
	return c
}

func (r *storedRecipient) ensureGate(group domain.Group) *storedGate {
	g, ok := r.gates[group]
	if !ok {
		g = new(storedGate)
		r.gates[group] = g
	}
	return g
}

// waitingEvents returns the unacknowledged events of c.
func (c *storedCabinet) waitingEvents() []repository.StoredEvent { return c.events[c.acknowledged:] }

// Save implements [repository.DataAvailable].
func (s *Store) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	if err := ctx.Err(); err != nil {
		return repository.Saved{}, fmt.Errorf("save: %w", err)
	}
	groups := make([]domain.Group, len(events))
	for i := range events {
		group, err := s.opts.Groups.GroupOf(events[i].Origin)
		if invalid := events[i].Check(); invalid != nil {
			err = invalid
		}
		if err != nil {
			return repository.Saved{}, fmt.Errorf("event %d: %w", i, err)
		}
		if events[i].Recipient != to {
			return repository.Saved{}, domain.Errorf(domain.Invalid, "event %d: it is for %q, want %q", i, events[i].Recipient, to)
		}
		groups[i] = group
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.recipientOf(to)
	var saved repository.Saved
	payloads := make(map[domain.CabinetKey]*payloadBuffer)
	now := s.opts.Clock()
	for i, e := range events {
		digest := e.Digest()
		switch earlier, again := r.received[e.ID]; {
		case again && earlier == digest:
			saved.Duplicates++
			continue
		case again:
			saved.Conflicts = append(saved.Conflicts, i)
			continue
		}
		saved.Accepted++
		r.received[e.ID] = digest
		r.last++
		stored := repository.StoredEvent{Event: e, Sequence: r.last, PayloadAt: s.appendPayload(payloads, &e), Saved: now}
		stored.Payload = nil
		c := r.ensureCabinet(e.Cabinet(), groups[i])
		c.events = append(c.events, stored)
		if span := domain.TraceContextOf(ctx); span.Sampled {
			span.State = ""
			c.saves[r.last] = span
		}
	}
	for _, o := range payloads {
		s.storeOwn(o.name, o.data)
	}
	return saved, nil
}

// A payloadBuffer contains the concatenated payloads of the events that one Save adds to a cabinet.
type payloadBuffer struct {
	name string
	data []byte
}

// appendPayload appends the payload of e, if any, to the object of its cabinet.
func (s *Store) appendPayload(payloads map[domain.CabinetKey]*payloadBuffer, e *domain.Event) repository.Section {
	if e.Payload == nil {
		return repository.Section{}
	}
	o, ok := payloads[e.Cabinet()]
	if !ok {
		s.made++
		o = &payloadBuffer{name: fmt.Sprintf("payloads/%d", s.made)}
		payloads[e.Cabinet()] = o
	}
	at := repository.Section{Object: o.name, Offset: int64(len(o.data)), Length: int64(len(e.Payload)), Sum: repository.SumOf(e.Payload)}
	o.data = append(o.data, e.Payload...)
	return at
}

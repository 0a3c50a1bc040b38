package explorer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A Scenario is a small world: what is stored at first, who does what to it, and
// what may go wrong.
type Scenario struct {
	Name     string
	Text     string // what it is about
	Quick    bool   // it is gone through in a moment
	Capacity int    // of a drawer; default 3
	Tail     int    // events of a cabinet in the head, at most
	Sweeps   bool   // what is acknowledged is removed by the next sweep
	Requests bool   // the content of bundles is made on request
	Watches  bool   // it is about watches and documents of clients, and not about events
	Objects  bool   // it is about the events of objects; with Watches: about watches of one
	Topic    bool   // of objects, changes are published to their topic
	Forgets  bool   // of objects, old rows are forgotten
	Crawl    *Crawl // of the bucket of objects; nil: none is made
	Session  bool   // the account promises no more than Session
	Prepare  func(*Member)
	Parties  []Party

	// The budgets.
	Crashes int
	Lost    int // replies of writes
	Stale   int // reads
	Behind  int // how many commits of its partition a stale read is old, at most; default 1
	Claims  int // of intents, before the others are done or dead

	Leases bool          // intents of others are left alone for a while
	Wait   time.Duration // how long a party waits that has nothing under way; 0: as short as it can

	left []domain.ObjectChange // for the topic, by the preparation

	mutateRequest func(*request) // a fault of the hub, to see that it is found
	tellsOrder    bool           // tell histories apart by the order of answers, whatever was under way together
}

// A Party is a process and what it does.
type Party struct {
	Name    string
	Patient bool           // it claims no intent before the others are done or dead
	After   int            // of the others, the number of the one that has to be done first; 0: nobody
	Offers  []domain.Event // what it may save

	Messages [][]repository.ObjectReport // that it delivers, in order
	Tail     int                         // its own limit of a tail; 0: that of the scenario, negative: none
	Does     func(*Member)
}

// A Member is the hand of a party: what it does leaves a sight.
type Member struct {
	ctx      context.Context
	proc     *partyProcess
	scenario *Scenario
	node     *cosmos.Repository
	push     *push.Store
	objects  *objects.Store
	name     byte
	bundles  byte

	changes repository.Changes
	service *watch.Service
	relay   *watch.Relay
	topic   *publish.ObjectRelay
	stored  []domain.ObjectChange // for the topic, not the ones whose outcome is unknown
}

// A sight is what a party was told.
type sight struct {
	what   string // saved, peeked, empty, dequeued, refused, swept, checked, marked; changed, watched, unwatched, published, served; ingested, forgot, crawled
	events []domain.Event
	bundle repositorytest.Peeked
	watch  domain.WatchID

	reports []repository.ObjectReport
	err     error
}

func (s *sight) String() string {
	text := s.what
	for i := range s.events {
		text += " " + s.events[i].ID.String()
	}
	if s.bundle.Count > 0 {
		text += fmt.Sprintf(" %s %d to %d", s.bundle.ID, s.bundle.First, s.bundle.Last)
	}
	if s.bundle.Object != "" {
		text += fmt.Sprintf(" %s %t", s.bundle.Object, s.bundle.Gone)
	}
	if s.watch != (domain.WatchID{}) {
		text += " " + s.watch.String()
	}
	if s.err != nil {
		text += fmt.Sprintf(" %v", domain.KindOf(s.err))
	}
	return text
}

func (m *Member) noteSight(s sight) {
	if m.proc == nil {
		return
	}
	m.proc.mu.Lock()
	defer m.proc.mu.Unlock()
	if !m.proc.dead {
		m.proc.sights = append(m.proc.sights, s)
	}
}

var (
	recipient = mustSucceed(domain.ParseActorID("actor"))
	startTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func mustSucceed[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Saves saves events by their numbers.
func (m *Member) Saves(events []domain.Event) {
	saved, err := m.node.Save(m.ctx, recipient, events)
	if err == nil && saved.Accepted+saved.Duplicates != len(events) {
		err = fmt.Errorf("of %d events it accepted %d and knew %d", len(events), saved.Accepted, saved.Duplicates)
	}
	m.noteSight(sight{what: "saved", events: events, err: err})
}

// Peeks peeks, looking again when another was faster, as the hub does.
func (m *Member) Peeks() (repositorytest.Peeked, bool) {
	for {
		m.bundles++
		id := domain.BundleID{0: m.name, 1: m.bundles, 6: 0x80, 8: 0x80}
		b, err := repositorytest.Peek(m.ctx, repositorytest.Stores{Events: m.node, Bundles: m.node}, recipient, groups, id, m.scenario.bundleChanges()...)
		switch {
		case err == nil:
			m.noteSight(sight{what: "peeked", bundle: b})
			return b, true
		case errors.Is(err, domain.ErrNoData):
			m.noteSight(sight{what: "empty"})
			return b, false
		case domain.KindOf(err) != domain.Conflict:
			m.noteSight(sight{what: "peeked", err: err})
			return b, false
		}
	}
}

// Dequeues dequeues a bundle.
func (m *Member) Dequeues(b repositorytest.Peeked) {
	_, err := m.node.Acknowledge(m.ctx, recipient, b.ID)
	m.noteSight(sight{what: "dequeued", bundle: b, err: err})
}

// Takes peeks so many times, and dequeues what it gets.
func (m *Member) Takes(times int) {
	for range times {
		if b, some := m.Peeks(); some {
			m.Dequeues(b)
		}
	}
}

// Sweeps removes what is acknowledged.
func (m *Member) Sweeps() {
	_, err := m.node.SweepRecipient(m.ctx, recipient)
	m.noteSight(sight{what: "swept", err: err})
}

// FlushesAll writes what is in tails to pages, as `check --repair` of a node without tails.
func (m *Member) FlushesAll() {
	_, err := m.node.Check(m.ctx, cosmos.CheckOptions{Recipient: recipient, Repair: true})
	m.noteSight(sight{what: "checked", err: err})
}

var groups = domain.DefaultGroups().All()

func (s *Scenario) newContent() repository.Content { return memory.NewContent() }

func (s *Scenario) drawerCapacity() int {
	if s.Capacity > 0 {
		return s.Capacity
	}
	return 3
}

func (s *Scenario) nodeOptions(seed uint64) cosmos.Options {
	retention := time.Duration(0) // the default
	if s.Sweeps {
		retention = 1
	}
	return cosmos.Options{
		DrawerCapacity: s.drawerCapacity(), TailEvents: s.Tail, Exclusive: !s.Leases, SweepEvery: -1,
		Clock: func() time.Time { return startTime }, Random: newSeeded(seed), Retention: retention,
	}
}

// optionsOf returns the options of the node of a party.
func (s *Scenario) optionsOf(party int) cosmos.Options {
	o := s.nodeOptions(uint64(party) + 1) //nolint:gosec // a small number
	if tail := s.Parties[party].Tail; tail != 0 {
		o.TailEvents = max(tail, 0)
	}
	return o
}

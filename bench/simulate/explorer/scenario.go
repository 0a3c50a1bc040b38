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

// A Scenario defines a preparation of the store, the actions of the parties, and the faults that may happen.
type Scenario struct {
	Name     string
	Text     string // description
	Quick    bool   // the quick tests explore the scenario
	Capacity int    // capacity of a drawer; default 3
	Tail     int    // limit for the events of a cabinet in the head
	Sweeps   bool   // the retention has passed, so a sweep removes acknowledged events
	Requests bool   // content is produced on request
	Watches  bool   // the scenario concerns watches and documents of clients, not events
	Objects  bool   // the scenario concerns events of objects; together with Watches, watches of an object
	Topic    bool   // changes of objects are published to their topic
	Forgets  bool   // old rows of objects are forgotten
	Crawl    *Crawl // crawl of the bucket, or nil
	Session  bool   // the account has Session consistency
	Prepare  func(*Member)
	Parties  []Party

	// The limits of faults.
	Crashes int // number of parties that may crash
	Lost    int // number of writes whose replies may be lost
	Stale   int // number of reads that may be stale
	Behind  int // number of commits to its partition that a stale read may miss; default 1
	Claims  int // number of claims of intents while other parties are running

	Leases bool          // parties respect the leases of the intents of other parties
	Wait   time.Duration // time that a party waits when it has no pending request; 0 means until its next timer

	left []domain.ObjectChange // changes that the preparation stored for the topic but did not publish

	mutateRequest      func(*partyRequest) // changes the requests of the hub, for tests of the explorer
	distinguishesOrder bool                // the order of answers to concurrent requests distinguishes histories
}

// A Party is a process and its actions.
type Party struct {
	Name    string
	Patient bool           // the party claims no intent before the other parties have finished or crashed
	After   int            // number of the party that must finish before this party starts; 0 means none
	Offers  []domain.Event // events that the party may save

	Messages [][]repository.ObjectReport // messages that the party delivers, in order
	Tail     int                         // tail limit of the party; 0 means the limit of the scenario, and a negative limit means no tails
	Run      func(*Member)
}

// A Member performs the actions of a party. Each action records its answer as a sight.
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
	stored  []domain.ObjectChange // changes for the topic whose Ingest was answered
}

// A sight records an action of a party and its answer.
type sight struct {
	what   string // saved, peeked, empty, dequeued, refused, swept, checked, marked; changed, watched, unwatched, published, served; ingested, forgot, crawled
	events []domain.Event
	bundle repositorytest.PeekedBundle
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

// Save saves events.
func (m *Member) Save(events []domain.Event) {
	saved, err := m.node.Save(m.ctx, recipient, events)
	if err == nil && saved.Accepted+saved.Duplicates != len(events) {
		err = fmt.Errorf("the Save of %d events reported %d accepted and %d duplicates", len(events), saved.Accepted, saved.Duplicates)
	}
	m.noteSight(sight{what: "saved", events: events, err: err})
}

// Peek peeks, and repeats the Peek after a conflict, as the hub does.
func (m *Member) Peek() (repositorytest.PeekedBundle, bool) {
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

// Dequeue dequeues a bundle.
func (m *Member) Dequeue(b repositorytest.PeekedBundle) {
	_, err := m.node.Acknowledge(m.ctx, recipient, b.ID)
	m.noteSight(sight{what: "dequeued", bundle: b, err: err})
}

// Take peeks several times, and dequeues each bundle that it receives.
func (m *Member) Take(times int) {
	for range times {
		if b, some := m.Peek(); some {
			m.Dequeue(b)
		}
	}
}

// Sweep removes acknowledged events.
func (m *Member) Sweep() {
	_, err := m.node.SweepRecipient(m.ctx, recipient)
	m.noteSight(sight{what: "swept", err: err})
}

// FlushAll writes all tails to pages, like `check --repair` on a node without tails.
func (m *Member) FlushAll() {
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

// optionsOf returns the options for a party's node.
func (s *Scenario) optionsOf(party int) cosmos.Options {
	o := s.nodeOptions(uint64(party) + 1) //nolint:gosec // a small number
	if tail := s.Parties[party].Tail; tail != 0 {
		o.TailEvents = max(tail, 0)
	}
	return o
}

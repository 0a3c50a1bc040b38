package repositorytest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Stores are the connected ports of one implementation.
type Stores struct {
	Events   repository.DataAvailable
	Bundles  repository.Bundles
	Content  repository.Content
	Admin    repository.Admin
	Answers  repository.Answers
	Outbox   repository.Outbox
	Dequeues repository.DequeueRequests
	Watches  repository.BundleWatches
	Survey   repository.Survey // lines contain the current state of their mailboxes; nil if the store has no survey
	Finder   repository.Finder
	Letters  repository.DeadLetterActions

	// Sweep removes the data of a recipient whose retention has passed.
	Sweep func(ctx context.Context, recipient domain.ActorID) error

	// Lose makes the store lose the events of a cabinet with numbers from first to last. They must be
	// all events of one Save, which has more than 200 events.
	Lose func(cabinet domain.CabinetKey, first, last domain.Sequence)
}

// Options are the requirements of a case for the stores that it opens.
type Options struct {
	DrawerCapacity int              // 0 means 10,000
	Ordering       domain.Ordering  // "" means domain.ByCabinet
	Clock          func() time.Time // nil means time.Now; otherwise its time always advances
	Retention      time.Duration    // minimum retention of watched bundles; 0 means at least 7 days
}

// A contractRule is a case of the suite: a sentence about the ports, and its test.
type contractRule struct {
	name     string
	capacity int // capacity of a drawer; 0 means 10,000
	ordering domain.Ordering
	keeps    time.Duration // retention of watched bundles; 0 means at least 7 days
	test     func(f *fixture)
}

// A topic contains the rules about one subject.
type topic struct {
	name  string
	rules []contractRule
}

var topics = []topic{
	{"Save", saveRules},
	{"Next", nextRules},
	{"Bundle", bundleRules},
	{"Race", raceRules},
	{"Weak", weakRules},
	{"Backlog", backlogRules},
	{"Ordering", orderingRules},
	{"Operations", operationRules},
	{"Lost", lostRules},
	{"Answer", answerRules},
	{"ReplaceAnswer", replaceAnswerRules},
	{"Outbox", outboxRules},
	{"Dequeues", dequeueRules},
	{"BundleWatches", bundleWatchRules},
	{"BundleRemoval", bundleRemovalRules},
	{"Find", append(slices.Clip(findRules), findTraceRules...)},
	{"DeadLetterActions", deadLetterOrderRules},
	{"Traces", traceRules},
}

// Run tests whether an implementation fulfills the contracts of all ports except Content. Each test
// calls open with its own t. If the stores must be closed, open calls t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, o Options) Stores) { run(t, topics, open) }

func run(t *testing.T, topics []topic, open func(t *testing.T, o Options) Stores) {
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			for _, r := range topic.rules {
				t.Run(r.name, func(t *testing.T) {
					clock, pass := newClock()
					stores := open(t, Options{DrawerCapacity: r.capacity, Ordering: r.ordering, Clock: clock, Retention: r.keeps})
					r.test(&fixture{T: t, Stores: stores, ctx: t.Context(), actor: NewActor(), pass: pass})
				})
			}
		})
	}
}

// newClock returns a clock that advances by a second with each call, and a function that advances it
// further.
func newClock() (clock func() time.Time, pass func(time.Duration)) {
	var mu sync.Mutex
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	move := func(d time.Duration) time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
		return now
	}
	return func() time.Time { return move(time.Second) }, func(d time.Duration) { move(d) }
}

// A fixture is the environment of a case: stores, and a recipient that no other case uses. Its methods
// fail the test if a call fails.
type fixture struct {
	*testing.T
	Stores
	ctx   context.Context
	actor domain.ActorID
	pass  func(time.Duration) // advances the clock of the stores
}

// withActor returns a fixture with the same stores and another recipient.
func (f *fixture) withActor(actor domain.ActorID) *fixture {
	return &fixture{f.T, f.Stores, f.ctx, actor, f.pass}
}

// events returns n new events for the recipient.
func (f *fixture) events(n int, changes ...Change) []domain.Event {
	return Events(n, f.actor, changes...)
}

// event returns a new event for the recipient.
func (f *fixture) event(changes ...Change) domain.Event { return Event(f.actor, changes...) }

// save saves events and returns the outcome.
func (f *fixture) save(events ...domain.Event) repository.Saved {
	f.Helper()
	saved, err := f.Events.Save(f.ctx, f.actor, events)
	require.NoError(f, err)
	return normalizeSaved(saved)
}

// normalizeSaved replaces an empty list of conflicts by nil.
func normalizeSaved(s repository.Saved) repository.Saved {
	if len(s.Conflicts) == 0 {
		s.Conflicts = nil
	}
	return s
}

// saveNew saves n new events and returns them.
func (f *fixture) saveNew(n int, changes ...Change) []domain.Event {
	f.Helper()
	events := f.events(n, changes...)
	require.Equal(f, repository.Saved{Accepted: n}, f.save(events...))
	return events
}

// readNext calls NextUnacknowledged for groups or, without groups, for all groups.
func (f *fixture) readNext(groups ...domain.Group) repository.Next {
	f.Helper()
	next, err := f.Events.NextUnacknowledged(f.ctx, f.actor, orAll(groups))
	require.NoError(f, err)
	return next
}

// wantNothing requires that no event waits in groups or, without groups, in any group.
func (f *fixture) wantNothing(groups ...domain.Group) {
	f.Helper()
	_, err := f.Events.NextUnacknowledged(f.ctx, f.actor, orAll(groups))
	require.ErrorIs(f, err, domain.ErrNoData)
}

// peek returns the open bundle of groups, or opens the next one. Without groups, it peeks all groups.
func (f *fixture) peek(groups ...domain.Group) PeekedBundle {
	f.Helper()
	peeked, err := Peek(f.ctx, f.Stores, f.actor, orAll(groups), domain.BundleID{})
	require.NoError(f, err)
	return peeked
}

// requirePeek requires that a Peek of all groups returns exactly the events in want.
func (f *fixture) requirePeek(want ...domain.Event) PeekedBundle {
	f.Helper()
	peeked := f.peek()
	f.wantSame(want, peeked.Events)
	return peeked
}

// acknowledge closes a bundle.
func (f *fixture) acknowledge(b PeekedBundle) {
	f.Helper()
	closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, closed.Bundle)
}

// wantDequeue requires that the next bundle has exactly these events, and closes it.
func (f *fixture) wantDequeue(want ...domain.Event) {
	f.Helper()
	f.acknowledge(f.requirePeek(want...))
}

// drain returns all remaining bundles.
func (f *fixture) drain() []PeekedBundle {
	f.Helper()
	drained, err := Drain(f.ctx, f.Stores, f.actor, AllGroups)
	require.NoError(f, err)
	return drained
}

// readRange returns all events of run.
func (f *fixture) readRange(run repository.Run) []repository.StoredEvent {
	f.Helper()
	events, err := ReadEvents(f.ctx, run)
	require.NoError(f, err)
	return events
}

// openBundle opens a bundle of the first n events of run.
func (f *fixture) openBundle(id domain.BundleID, run repository.Run, n int) (domain.Bundle, error) {
	f.Helper()
	events := f.readRange(run)
	require.GreaterOrEqual(f, len(events), n)
	return f.Bundles.Add(f.ctx, bundleOf(id, run, events[:n]), run)
}

// wantRefusal requires that err has kind and is not ErrBundleIDInUse.
func (f *fixture) wantRefusal(kind domain.Kind, err error) {
	f.Helper()
	require.Error(f, err)
	require.Equal(f, kind.String(), domain.KindOf(err).String(), "kind of %v", err)
	require.NotErrorIs(f, err, repository.ErrBundleIDInUse)
}

// requireIDInUse requires that err is ErrBundleIDInUse.
func (f *fixture) requireIDInUse(err error) {
	f.Helper()
	require.ErrorIs(f, err, repository.ErrBundleIDInUse)
	require.Equal(f, domain.Conflict, domain.KindOf(err))
}

// requireClosed requires that the recipient has no open bundle id.
func (f *fixture) requireClosed(id domain.BundleID) {
	f.Helper()
	_, err := f.Bundles.Acknowledge(f.ctx, f.actor, id)
	f.wantRefusal(domain.NotFound, err)
}

// wantSame requires that got are the events of want, in the same order, with equal fields and with
// ascending sequence numbers.
func (f *fixture) wantSame(want []domain.Event, got []repository.StoredEvent) {
	f.Helper()
	require.Len(f, got, len(want))
	for i := range got {
		if !SameEvent(&got[i], &want[i]) {
			assert.Equal(f, want[i], got[i].Event)
			require.FailNow(f, "another event", "at index %d", i)
		}
		if i > 0 {
			require.Greater(f, got[i].Sequence, got[i-1].Sequence, "at index %d", i)
		}
	}
}

// requireSameBundle requires that two bundles are equal. Their times may be in different locations.
func (f *fixture) requireSameBundle(want, got domain.Bundle) {
	f.Helper()
	require.True(f, want.Opened.Equal(got.Opened), "opened: want %v, got %v", want.Opened, got.Opened)
	got.Opened = want.Opened
	require.Equal(f, want, got)
}

// bundleOf returns a bundle of events of run, whatever their weight.
func bundleOf(id domain.BundleID, run repository.Run, events []repository.StoredEvent) domain.Bundle {
	b := domain.Bundle{
		ID: id, Group: run.Group(), Cabinet: run.Cabinet(), Count: len(events),
		First: events[0].Sequence, Last: events[len(events)-1].Sequence,
		Content: domain.Manifest, Format: domain.JSON, Version: "1.0",
	}
	for _, e := range events {
		b.Weight = b.Weight.Add(e.Weight)
		if !slices.Contains(b.DocumentTypes, e.DocumentType) {
			b.DocumentTypes = append(b.DocumentTypes, e.DocumentType)
		}
	}
	return b
}

func orAll(groups []domain.Group) []domain.Group {
	if len(groups) == 0 {
		return AllGroups
	}
	return groups
}

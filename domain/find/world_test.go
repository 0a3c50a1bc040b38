package find_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A world is a store with one actor, and a service that searches it.
type world struct {
	*testing.T
	store   *memory.Store
	ports   find.Ports
	service *find.Service
	actor   domain.ActorID
}

var because = repository.AdminAction{Who: "kim", Why: "ticket 4711"}

func newWorld(t *testing.T, opts find.Options) *world {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	store := memory.New(memory.Options{Clock: clock})
	w := &world{T: t, store: store, actor: repositorytest.NewActor(), ports: find.Ports{Finder: store, Admin: store, Outbox: store}}
	w.service = find.New(w.ports, opts)
	return w
}

// saveEvents saves n new events for an actor and returns them.
func (w *world) saveEvents(to domain.ActorID, n int, changes ...repositorytest.Change) []domain.Event {
	w.Helper()
	events := repositorytest.Events(n, to, changes...)
	_, err := w.store.Save(w.Context(), to, events)
	require.NoError(w, err)
	return events
}

func (w *world) peekBundle(to domain.ActorID, changes ...func(*domain.Bundle)) domain.Bundle {
	w.Helper()
	peeked, err := repositorytest.Peek(w.Context(), repositorytest.Stores{Events: w.store, Bundles: w.store}, to, repositorytest.AllGroups, domain.BundleID{}, changes...)
	require.NoError(w, err)
	return peeked.Bundle
}

func (w *world) dequeueBundle(b domain.Bundle) {
	w.Helper()
	_, err := w.store.Acknowledge(w.Context(), b.Cabinet.Recipient, b.ID)
	require.NoError(w, err)
}

// find returns the answer to a query.
func (w *world) find(q find.Query) *find.Answer {
	w.Helper()
	a, err := w.service.Find(w.Context(), q)
	require.NoError(w, err)
	return a
}

// findOne returns the result of a query, which must be the only one.
func (w *world) findOne(q find.Query) *find.Result {
	w.Helper()
	a := w.find(q)
	require.Len(w, a.Results, 1)
	require.False(w, a.IsUnknown())
	return &a.Results[0]
}

// findEvent searches for an event and returns the result, which must be the only one.
func (w *world) findEvent(e *domain.Event) *find.Result {
	w.Helper()
	return w.findOne(find.Query{ID: e.ID.String(), Actor: e.Recipient})
}

func kindsOf(r *find.Result) (kinds []find.StepKind) {
	for _, s := range r.Steps {
		kinds = append(kinds, s.What)
	}
	return kinds
}

func causesOf(r *find.Result) (causes []find.Cause) {
	for _, wait := range r.Waits {
		causes = append(causes, wait.Cause)
	}
	return causes
}

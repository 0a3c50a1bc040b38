package hub_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// eventsInTurns returns n events for each recipient, with the recipients alternating.
func eventsInTurns(n int, recipients ...domain.ActorID) []domain.Event {
	var events []domain.Event
	for range n {
		for _, r := range recipients {
			events = append(events, rt.Event(r))
		}
	}
	return events
}

func TestIngest_KeepsTheOrderOfEachRecipient(t *testing.T) {
	w := newWorld(t, hub.Options{})
	recipients := []domain.ActorID{rt.NewActor(), rt.NewActor(), rt.NewActor()}
	events := eventsInTurns(20, recipients...)
	w.sendEvents(events...)
	for i, recipient := range recipients {
		var own []domain.Event
		for at := i; at < len(events); at += len(recipients) {
			own = append(own, events[at])
		}
		w.actor = recipient
		w.requireEvents(w.peekBundle(), own...)
	}
}

func TestIngest_SavesARecipientInOneCall(t *testing.T) {
	w := newWorld(t, hub.Options{})
	var mu sync.Mutex
	saves := map[domain.ActorID]int{}
	w.replaceCalls(replacedStore{save: func(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
		mu.Lock()
		saves[to]++
		mu.Unlock()
		return w.store.Save(ctx, to, events)
	}}, hub.Options{})
	a, b := rt.NewActor(), rt.NewActor()
	w.sendEvents(eventsInTurns(10, a, b)...)
	require.Equal(t, map[domain.ActorID]int{a: 1, b: 1}, saves)
}

func TestIngest_AcceptsAnEmptyRequest(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendEvents()
	w.requireNoData()
}

func TestIngest_CountsARepeatedEventAsDuplicate(t *testing.T) {
	w := newWorld(t, hub.Options{})
	a, b, c := rt.Event(w.actor), rt.Event(w.actor, rt.WithPayload(`{"a":1}`)), rt.Event(w.actor)
	for _, tc := range []struct {
		name   string
		events []domain.Event
		want   hub.IngestResult
	}{
		{"within a request", []domain.Event{a, b, a, a, b}, hub.IngestResult{Accepted: 2, Duplicates: 3}},
		{"in a later request", []domain.Event{a, b}, hub.IngestResult{Duplicates: 2}},
		{"among new ones", []domain.Event{b, c, a, c}, hub.IngestResult{Accepted: 1, Duplicates: 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ingested, err := w.hub.Ingest(w.ctx, tc.events)
			require.NoError(t, err)
			require.Equal(t, tc.want, ingested)
		})
	}
	open := w.peekBundle()
	w.requireEvents(open, a, b, c)
	w.dequeueBundle(open)

	ingested, err := w.hub.Ingest(w.ctx, []domain.Event{a})
	require.NoError(t, err)
	require.Equal(t, hub.IngestResult{Duplicates: 1}, ingested, "also after it was fetched")
	w.requireNoData()
}

func TestIngest_AcceptsOneIDForTwoRecipients(t *testing.T) {
	w := newWorld(t, hub.Options{})
	mine, theirs := rt.Event(w.actor), rt.Event(rt.NewActor(), rt.WithWeight(7))
	theirs.ID = mine.ID
	w.sendEvents(mine, theirs)
	w.requireEvents(w.peekBundle(), mine)
	w.actor = theirs.Recipient
	w.requireEvents(w.peekBundle(), theirs)
}

func TestIngest_ReportsTheIndexesOfConflicts(t *testing.T) {
	w := newWorld(t, hub.Options{})
	a, b := rt.NewActor(), rt.NewActor()
	stored := eventsInTurns(3, a, b)
	w.sendEvents(stored...)

	request := eventsInTurns(4, b, a) // events with an even index are for b
	for at, of := range map[int]domain.Event{1: stored[2], 4: stored[1], 6: stored[5]} {
		request[at].ID = of.ID
		request[at].Recipient = of.Recipient
		request[at].Weight = 99
	}
	request[3] = stored[0]
	ingested, err := w.hub.Ingest(w.ctx, request)
	require.NoError(t, err)
	require.Equal(t, hub.IngestResult{Accepted: 4, Duplicates: 1, Conflicts: []int{1, 4, 6}}, ingested)

	w.actor = a
	w.requireEvents(w.peekBundle(), stored[0], stored[2], stored[4], request[5], request[7])
}

// failSavesFor makes Saves fail for some recipients.
func (w *world) failSavesFor(failures map[domain.ActorID]error) {
	w.replaceCalls(replacedStore{save: func(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
		if err := failures[to]; err != nil {
			return repository.Saved{}, err
		}
		return w.store.Save(ctx, to, events)
	}}, hub.Options{})
}

func TestIngest_StoresOtherRecipientsIfOneFails(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			well, ill := rt.NewActor(), rt.NewActor()
			failure := domain.Errorf(kind, "no luck")
			w.failSavesFor(map[domain.ActorID]error{ill: failure})
			earlier := eventsInTurns(2, well)
			w.sendEvents(earlier...)

			events := append(eventsInTurns(3, ill, well), earlier[0])
			changed := earlier[1]
			changed.Weight++
			events = append(events, changed)
			ingested, err := w.hub.Ingest(w.ctx, events)
			require.ErrorIs(t, err, failure)
			require.Equal(t, kind, domain.KindOf(err))
			require.EqualError(t, err, fmt.Sprintf("save 3 events for %s: no luck", ill))
			require.Equal(t, hub.IngestResult{Accepted: 3, Duplicates: 1, Conflicts: []int{7}}, ingested, "those of the others")
			unstored, ok := errors.AsType[*hub.UnstoredError](err)
			require.True(t, ok)
			require.Len(t, unstored.Failures, 1)
			require.Equal(t, []int{0, 2, 4}, unstored.Failures[0].Events)

			w.failSavesFor(nil)
			ingested, err = w.hub.Ingest(w.ctx, events[:6])
			require.NoError(t, err)
			require.Equal(t, hub.IngestResult{Accepted: 3, Duplicates: 3}, ingested, "the caller's retry")
		})
	}
}

// If any error is temporary, the error of Ingest must be temporary, because a retry may store more events.
func TestIngest_RanksTemporaryErrorsFirst(t *testing.T) {
	invalid := domain.Errorf(domain.Invalid, "too many cabinets")
	damaged := domain.Errorf(domain.Damaged, "no sense")
	demand := func(lasting, passing error) {
		t.Helper()
		w := newWorld(t, hub.Options{})
		ill, away := rt.NewActor(), rt.NewActor()
		w.failSavesFor(map[domain.ActorID]error{ill: lasting, away: passing})
		_, err := w.hub.Ingest(t.Context(), []domain.Event{rt.Event(ill), rt.Event(away), rt.Event(ill)})
		require.ErrorIs(t, err, passing)
		require.Equal(t, domain.KindOf(passing), domain.KindOf(err))
		require.ErrorContains(t, err, lasting.Error())
	}
	demand(invalid, damaged) // Damaged ranks before Invalid, because an operator may repair the damage
	for _, kind := range kindsExcept(domain.Invalid, domain.Damaged) {
		passing := domain.Errorf(kind, "away")
		demand(invalid, passing)
		demand(damaged, passing)
	}
	demand(invalid, errors.New("nobody has classified this"))
	demand(damaged, errors.New("nobody has classified this"))
}

func TestIngest_NamesEachFailedRecipient(t *testing.T) {
	w := newWorld(t, hub.Options{})
	a, b := rt.NewActor(), rt.NewActor()
	failure := domain.Errorf(domain.Unavailable, "store is out of reach")
	w.failSavesFor(map[domain.ActorID]error{a: failure, b: failure})
	ingested, err := w.hub.Ingest(w.ctx, eventsInTurns(1, a, b))
	require.Zero(t, ingested)
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.ErrorContains(t, err, a.String())
	require.ErrorContains(t, err, b.String())
}

func TestIngest_StoresNothingIfItsContextHasEnded(t *testing.T) {
	w := newWorld(t, hub.Options{})
	gone, cancel := context.WithCancel(w.ctx)
	cancel()
	ingested, err := w.hub.Ingest(gone, rt.Events(2, w.actor))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, ingested)
	w.requireNoData()
}

func TestIngest_LimitsConcurrentSaves(t *testing.T) {
	for options, want := range map[int]int{0: 8, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			var (
				mu      sync.Mutex
				saving  int
				release = make(chan struct{})
			)
			w.replaceCalls(replacedStore{save: func(context.Context, domain.ActorID, []domain.Event) (repository.Saved, error) {
				mu.Lock()
				saving++
				mu.Unlock()
				<-release
				return repository.Saved{Accepted: 1}, nil
			}}, hub.Options{Parallel: options})
			var events []domain.Event
			for range 12 {
				events = append(events, rt.Event(rt.NewActor()))
			}
			done := make(chan hub.IngestResult)
			go func() {
				ingested, _ := w.hub.Ingest(w.ctx, events)
				done <- ingested
			}()
			synctest.Wait() // wait until every goroutine is blocked
			require.Equal(t, want, saving)
			close(release)
			require.Equal(t, hub.IngestResult{Accepted: 12}, <-done)
		})
	}
}

package find_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestFind_RefusesAnInvalidID(t *testing.T) {
	w := newWorld(t, find.Options{})
	uuid := repositorytest.NewEventID().String()
	for _, q := range []find.Query{
		{},
		{ID: strings.Repeat("x", find.MaxID+1)},
		{ID: "a\nb"},
		{ID: "a\x00"},
		{ID: "\xff"},
		{ID: uuid, Kind: "color"},
		{ID: uuid, After: "x"},
		{ID: uuid, After: strings.Repeat("A", 1<<20)},
	} {
		_, err := w.service.Find(t.Context(), q)
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%.40q", q.ID)
	}
}

func TestFind_ReportsWhatItHasSearched(t *testing.T) {
	w := newWorld(t, find.Options{})
	w.saveEvents(w.actor, 1)
	w.saveEvents(repositorytest.NewActor(), 1)
	uuid := repositorytest.NewEventID().String()
	for _, tc := range []struct {
		id        string
		kinds     []find.Kind
		mailboxes int
	}{
		{uuid, []find.Kind{find.Bundle, find.Event}, 2},
		{strings.ToUpper(uuid), []find.Kind{find.Bundle, find.Event}, 2},
		{uuid + "_" + w.actor.String(), []find.Kind{find.Request}, 0},
		{uuid + ".0.1", []find.Kind{find.Delivery}, 0},
		{`<script>alert("x")</script>`, nil, 0},
		{"\u202eevil", nil, 0},
		{strings.Repeat("x", 64), nil, 0},
		{"'; DROP TABLE c; --", nil, 0},
	} {
		a := w.find(find.Query{ID: tc.id})
		require.True(t, a.IsUnknown(), tc.id)
		require.Equal(t, tc.kinds, a.Scope.Kinds, tc.id)
		require.Equal(t, tc.mailboxes, a.Scope.Mailboxes, tc.id)
		if len(tc.kinds) != 1 || tc.kinds[0] != find.Request {
			require.NotEmpty(t, a.Scope.Notes, tc.id)
		}
	}
}

func TestFind_ContinuesUntilEveryMailboxWasSearched(t *testing.T) {
	w := newWorld(t, find.Options{Limit: 2})
	shared := repositorytest.NewEventID()
	for i := range 9 {
		actor := repositorytest.NewActor()
		if i%2 == 0 {
			w.saveEvents(actor, 1, func(e *domain.Event) { e.ID = shared })
			continue
		}
		w.saveEvents(actor, 1)
	}
	q, found, answers := find.Query{ID: shared.String()}, 0, 0
	for {
		a := w.find(q)
		answers++
		found += len(a.Results)
		require.LessOrEqual(t, len(a.Results), 2)
		require.Equal(t, found, a.Scope.Found)
		require.False(t, a.IsUnknown(), "it was found before")
		if q.After = a.After; q.After == "" {
			require.Equal(t, 9, a.Scope.Mailboxes)
			break
		}
	}
	require.Equal(t, 5, found)
	require.Greater(t, answers, 2)

	a := w.find(find.Query{ID: shared.String()})
	_, err := w.service.Find(t.Context(), find.Query{ID: repositorytest.NewEventID().String(), After: a.After})
	require.Equal(t, domain.Invalid, domain.KindOf(err), "it is of another search")
}

func TestFind_FindsABundleByItsIDAndTheIDOfItsRequest(t *testing.T) {
	w := newWorld(t, find.Options{})
	w.saveEvents(w.actor, 2)
	b := w.peekBundle(w.actor)
	for _, q := range []find.Query{
		{ID: b.ID.String()},
		{ID: strings.ToUpper(b.ID.String())},
		{ID: b.ID.String(), Actor: w.actor},
		{ID: hub.ProcessID(b.ID, w.actor)},
	} {
		r := w.findOne(q)
		require.Equal(t, find.Bundle, r.Kind)
		require.Equal(t, find.StateOpen, r.State)
		require.Equal(t, w.actor, r.Actor)
		require.Equal(t, []find.StepKind{find.StepOpened}, kindsOf(r))
		require.Equal(t, []find.Cause{find.CauseNotDequeued}, causesOf(r))
	}
	require.True(t, w.find(find.Query{ID: hub.ProcessID(b.ID, repositorytest.NewActor())}).IsUnknown())
	require.True(t, w.find(find.Query{ID: b.ID.String(), Kind: find.Event}).IsUnknown())
	require.True(t, w.find(find.Query{ID: b.ID.String(), Kind: find.Delivery}).IsUnknown())
}

func TestFind_ReturnsTheBundlesOfSeveralActorsUpToALimit(t *testing.T) {
	w := newWorld(t, find.Options{Limit: 2})
	id := repositorytest.NewBundleID()
	for range 3 {
		actor := repositorytest.NewActor()
		w.saveEvents(actor, 1)
		w.peekBundle(actor, func(b *domain.Bundle) { b.ID = id })
	}
	a := w.find(find.Query{ID: id.String()})
	require.Len(t, a.Results, 2)
	require.Len(t, a.Scope.Notes, 2, "%q", a.Scope.Notes)
}

// noBundles is a store that no longer has bundles.
type noBundles struct{ repository.Finder }

func (noBundles) FindBundle(context.Context, domain.BundleID, domain.ActorID, int) (repository.BundleSearch, error) {
	return repository.BundleSearch{}, nil
}

func TestFind_ShowsTheRecordsOfADeletedBundle(t *testing.T) {
	w := newWorld(t, find.Options{})
	w.saveEvents(w.actor, 2)
	b := w.peekBundle(w.actor)
	require.NoError(t, w.store.Skip(t.Context(), w.actor, b.ID, because))
	w.ports.Finder = noBundles{w.store}
	w.service = find.New(w.ports, find.Options{})
	r := w.findOne(find.Query{ID: b.ID.String(), Actor: w.actor, Kind: find.Bundle})
	require.Equal(t, find.StatePassed, r.State)
	require.Equal(t, []find.StepKind{find.StepSkipped}, kindsOf(r))
}

func TestFind_ShowsTheViewAndTheDequeueOfABundle(t *testing.T) {
	w := newWorld(t, find.Options{})
	w.saveEvents(w.actor, 2)
	b := w.peekBundle(w.actor)
	require.NoError(t, w.store.RecordView(t.Context(), w.actor, b.ID, because))
	_, err := w.store.Acknowledge(t.Context(), w.actor, b.ID)
	require.NoError(t, err)
	r := w.findOne(find.Query{ID: b.ID.String()})
	require.ElementsMatch(t, []find.StepKind{find.StepOpened, find.StepRead, find.StepDequeued}, kindsOf(r))
}

// damagedStore is a store in which one mailbox and the operators' records cannot be read.
type damagedStore struct {
	repository.Finder
	repository.Admin
	repository.Outbox
}

var errDamaged = domain.Errorf(domain.Damaged, "document \"<script>\": %w", errors.New("no JSON"))

func (d damagedStore) FindEvent(ctx context.Context, q repository.EventQuery) (repository.EventSearch, error) {
	search, err := d.Finder.FindEvent(ctx, q)
	search.Unread = append(search.Unread, repository.UnreadMailbox{Recipient: "other", Reason: errDamaged.Error()})
	return search, err
}

func (damagedStore) Records(context.Context, domain.ActorID, int) ([]repository.Record, error) {
	return nil, errDamaged
}

func TestFind_ListsWhatItCannotRead(t *testing.T) {
	w := newWorld(t, find.Options{})
	e := w.saveEvents(w.actor, 1)[0]
	d := damagedStore{w.store, w.store, w.store}
	w.service = find.New(find.Ports{Finder: d, Admin: d, Outbox: d}, find.Options{})
	a := w.find(find.Query{ID: e.ID.String()})
	require.Len(t, a.Results, 1)
	require.Equal(t, 2, a.Scope.Unread)
	require.Len(t, a.Scope.Damage, 2)
	a = w.find(find.Query{ID: repositorytest.NewEventID().String()})
	require.Empty(t, a.Results)
	require.False(t, a.IsUnknown(), "it may be in the mailbox that was not read")
}

// fakeExplainer returns the same explanation or error for every delivery.
type fakeExplainer struct {
	*inspect.Explanation
	err error
}

func (x fakeExplainer) Explain(context.Context, inspect.Reader, domain.DeliveryID) (*inspect.Explanation, error) {
	return x.Explanation, x.err
}

func TestFind_ExplainsADelivery(t *testing.T) {
	w := newWorld(t, find.Options{})
	id := repositorytest.NewEventID().String() + ".0.7"
	x := &inspect.Explanation{Delivery: inspect.Delivery{
		State: inspect.Retrying, History: []domain.Attempt{{Number: 1, Status: 500}, {Number: 2, Error: "timeout"}}, Event: &inspect.Event{ID: "e"},
	}, Cause: inspect.CauseBackoff, Sentences: []string{"Its next attempt is due."}}
	with := func(e find.Explainer) {
		w.ports.Deliveries = e
		w.service = find.New(w.ports, find.Options{})
	}
	with(fakeExplainer{Explanation: x})
	r := w.findOne(find.Query{ID: id})
	require.Equal(t, find.Delivery, r.Kind)
	require.Equal(t, []find.StepKind{find.StepPublished, find.StepAttempt, find.StepAttempt}, kindsOf(r))
	require.Equal(t, []find.Cause{"backoff"}, causesOf(r))

	x.State, x.Cause = inspect.Dead, inspect.CauseSpent
	r = w.findOne(find.Query{ID: id})
	require.Empty(t, r.Waits)
	require.Equal(t, x.Sentences, r.Notes)

	with(fakeExplainer{err: domain.Errorf(domain.NotFound, "no such subscription")})
	require.True(t, w.find(find.Query{ID: id}).IsUnknown())
	with(fakeExplainer{err: errDamaged})
	require.False(t, w.find(find.Query{ID: id}).IsUnknown())
	with(fakeExplainer{err: domain.Errorf(domain.Unavailable, "away")})
	_, err := w.service.Find(t.Context(), find.Query{ID: id})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
}

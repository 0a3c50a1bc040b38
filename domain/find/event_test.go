package find_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestAnEvent_GoesFromAcceptedToDequeued(t *testing.T) {
	w := newWorld(t, find.Options{})
	events := w.saveEvents(w.actor, 2)
	r := w.findEvent(&events[1])
	require.Equal(t, find.StateWaiting, r.State)
	require.Equal(t, []find.StepKind{find.StepAccepted}, kindsOf(r))
	require.Equal(t, []find.Cause{find.CauseOlderEvents, find.CauseNotPeeked}, causesOf(r))
	require.Equal(t, r.Steps[0].At, r.Waits[1].Since)
	require.Contains(t, r.Steps[0].Details, find.Detail{Name: "number", Value: "2"})

	b := w.peekBundle(w.actor)
	r = w.findEvent(&events[1])
	require.Equal(t, find.StateOpen, r.State)
	require.Equal(t, []find.StepKind{find.StepAccepted, find.StepOpened}, kindsOf(r))
	require.Equal(t, []find.Cause{find.CauseNotDequeued}, causesOf(r))

	w.dequeueBundle(b)
	r = w.findEvent(&events[1])
	require.Equal(t, find.StateDequeued, r.State)
	require.Equal(t, []find.StepKind{find.StepAccepted, find.StepOpened, find.StepDequeued}, kindsOf(r))
	require.Empty(t, r.Waits)
}

func TestAnEvent_NamesWhoSkippedItAndWhy(t *testing.T) {
	w := newWorld(t, find.Options{})
	events := w.saveEvents(w.actor, 1)
	b := w.peekBundle(w.actor)
	require.NoError(t, w.store.Release(t.Context(), w.actor, b.ID, repository.AdminAction{Who: "lee", Why: "once more"}))
	require.Equal(t, []find.Cause{find.CauseNotPeeked}, causesOf(w.findEvent(&events[0])))
	b = w.peekBundle(w.actor)
	require.NoError(t, w.store.Skip(t.Context(), w.actor, b.ID, because))
	r := w.findEvent(&events[0])
	require.Equal(t, find.StateSkipped, r.State)
	require.Equal(t, []find.StepKind{find.StepAccepted, find.StepOpened, find.StepReleased, find.StepOpened, find.StepSkipped}, kindsOf(r))
	require.Contains(t, r.Steps[2].Text, "lee")
	require.Contains(t, r.Steps[4].Text, "kim")
	require.Equal(t, []find.Detail{{Name: "why", Value: "ticket 4711"}}, r.Steps[4].Details)

	_, err := w.store.Replay(t.Context(), w.actor, b.Group, because)
	require.NoError(t, err)
	w.dequeueBundle(w.peekBundle(w.actor))
	r = w.findEvent(&events[0])
	require.Equal(t, find.StateDequeued, r.State)
	require.Equal(t, []find.StepKind{find.StepReplayed, find.StepDequeued}, kindsOf(r)[5:])
}

func TestAnEvent_NamesEachCauseOfItsWait(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setUp func(w *world) domain.Event
		want  []find.Cause
	}{
		{"frozen", func(w *world) domain.Event {
			e := w.saveEvents(w.actor, 1)[0]
			require.NoError(w, w.store.Freeze(w.Context(), w.actor, because))
			return e
		}, []find.Cause{find.CauseFrozen, find.CauseNotPeeked}},
		{"damaged", func(w *world) domain.Event {
			events := w.saveEvents(w.actor, 2)
			w.store.Lose(events[0].Cabinet(), 1, 1)
			return events[1]
		}, []find.Cause{find.CauseDamaged, find.CauseOlderEvents, find.CauseNotPeeked}},
		{"another bundle", func(w *world) domain.Event {
			w.saveEvents(w.actor, 1, repositorytest.WithOrigin(domain.Charges))
			w.peekBundle(w.actor)
			return w.saveEvents(w.actor, 1, repositorytest.WithOrigin(domain.MarketRoles))[0]
		}, []find.Cause{find.CauseOtherBundle, find.CauseNotDequeued}},
		{"another bundle whose domain fails", func(w *world) domain.Event {
			w.saveEvents(w.actor, 1, repositorytest.WithoutBundling)
			b := w.peekBundle(w.actor, repositorytest.OnRequest)
			_, err := w.store.Fail(w.Context(), w.actor, b.ID, domain.ContentFailure{Reason: "DatasetNotFound", Text: "<script>"})
			require.NoError(w, err)
			return w.saveEvents(w.actor, 1)[0]
		}, []find.Cause{find.CauseOtherBundle, find.CauseDomainFailing}},
		{"an older cabinet", func(w *world) domain.Event {
			w.saveEvents(w.actor, 1, repositorytest.WithOrigin(domain.Charges))
			return w.saveEvents(w.actor, 1, repositorytest.WithOrigin(domain.MarketRoles))[0]
		}, []find.Cause{find.CauseOlderCabinet, find.CauseNotPeeked}},
		{"a domain that has not answered", func(w *world) domain.Event {
			e := w.saveEvents(w.actor, 1)[0]
			w.peekBundle(w.actor, repositorytest.OnRequest)
			return e
		}, []find.Cause{find.CauseDomainSilent}},
		{"a domain that fails", func(w *world) domain.Event {
			e := w.saveEvents(w.actor, 1)[0]
			b := w.peekBundle(w.actor, repositorytest.OnRequest)
			_, err := w.store.Fail(w.Context(), w.actor, b.ID, domain.ContentFailure{Reason: "no-answer"})
			require.NoError(w, err)
			return e
		}, []find.Cause{find.CauseDomainFailing}},
		{"content that is gone", func(w *world) domain.Event {
			e := w.saveEvents(w.actor, 1)[0]
			b := w.peekBundle(w.actor, repositorytest.OnRequest)
			object := repositorytest.ObjectOf(b.ID)
			_, err := w.store.Answer(w.Context(), w.actor, b.ID, object, domain.Body{Length: 5})
			require.NoError(w, err)
			_, err = w.store.MarkGone(w.Context(), w.actor, b.ID, object)
			require.NoError(w, err)
			return e
		}, []find.Cause{find.CauseContentGone}},
		{"a notice", func(w *world) domain.Event {
			e := w.saveEvents(w.actor, 1)[0]
			b := w.peekBundle(w.actor, repositorytest.OnRequest)
			_, err := w.store.Answer(w.Context(), w.actor, b.ID, repositorytest.ObjectOf(b.ID), domain.Body{Length: 5})
			require.NoError(w, err)
			w.dequeueBundle(b)
			return e
		}, []find.Cause{find.CauseNotice}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, find.Options{})
			e := tc.setUp(w)
			r := w.findEvent(&e)
			require.Equal(t, tc.want, causesOf(r))
			for _, wait := range r.Waits {
				require.NotEmpty(t, wait.Text)
				require.NotEmpty(t, wait.Next)
				require.Contains(t, find.Causes, wait.Cause)
			}
		})
	}
}

// savingFinder reports every event as if its Save had not ended.
type savingFinder struct{ repository.Finder }

func (f savingFinder) FindEvent(ctx context.Context, q repository.EventQuery) (repository.EventSearch, error) {
	search, err := f.Finder.FindEvent(ctx, q)
	for i := range search.Found {
		search.Found[i].IsReserved = true
	}
	return search, err
}

func TestAnEvent_HasTheStateSavingDuringItsSave(t *testing.T) {
	w := newWorld(t, find.Options{})
	e := w.saveEvents(w.actor, 1)[0]
	w.ports.Finder = savingFinder{w.store}
	w.service = find.New(w.ports, find.Options{})
	r := w.findEvent(&e)
	require.Equal(t, find.StateSaving, r.State)
	require.Equal(t, []find.Cause{find.CauseSaving}, causesOf(r))
}

func TestTheNoticeToADomain_IsAStepWithoutATime(t *testing.T) {
	w := newWorld(t, find.Options{})
	e := w.saveEvents(w.actor, 1)[0]
	b := w.peekBundle(w.actor, repositorytest.OnRequest)
	_, err := w.store.Answer(t.Context(), w.actor, b.ID, repositorytest.ObjectOf(b.ID), domain.Body{Length: 5})
	require.NoError(t, err)
	w.dequeueBundle(b)
	notices, err := w.store.Notices(t.Context(), w.actor)
	require.NoError(t, err)
	require.NoError(t, w.store.Delivered(t.Context(), notices[0]))
	r := w.findEvent(&e)
	require.Empty(t, r.Waits)
	require.Equal(t, []find.StepKind{find.StepAccepted, find.StepOpened, find.StepAnswered, find.StepDequeued, find.StepNotified}, kindsOf(r))
	require.Zero(t, r.Steps[4].At)
}

func TestAFreeze_IsAStepAtItsTime(t *testing.T) {
	w := newWorld(t, find.Options{})
	first := w.saveEvents(w.actor, 1)[0]
	require.NoError(t, w.store.Freeze(t.Context(), w.actor, because))
	second := w.saveEvents(w.actor, 1)[0]
	require.Equal(t, []find.StepKind{find.StepAccepted, find.StepFrozen}, kindsOf(w.findEvent(&first)))
	r := w.findEvent(&second)
	require.Equal(t, []find.StepKind{find.StepFrozen, find.StepAccepted}, kindsOf(r))
	require.Contains(t, r.Waits[0].Text, "kim")
	require.Equal(t, r.Steps[0].At, r.Waits[0].Since)
}

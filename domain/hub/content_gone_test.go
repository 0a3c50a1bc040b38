package hub_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// newCountingWorld returns a world whose domain writes the number of the request into the content. missing contains the
// losses that the hub has reported.
func newCountingWorld(t *testing.T, change ...func(*hub.Options)) (w *world, d *contentDomain, missing *[]hub.MissingContent) {
	missing = new([]hub.MissingContent)
	w, d = newContentWorld(t, append(change, func(o *hub.Options) {
		o.Missing = func(m hub.MissingContent) { *missing = append(*missing, m) }
	})...)
	d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, fmt.Sprint("content ", n))
	}
	return w, d, missing
}

// deleteContent deletes the content of a bundle from the content store.
func (w *world) deleteContent(p *hub.PeekedBundle) {
	w.Helper()
	require.NoError(w, w.store.Delete(w.ctx, p.Object))
}

// requireContentGone checks that reading a bundle's body fails because the content was deleted.
func (w *world) requireContentGone(p *hub.PeekedBundle) {
	w.Helper()
	err := writeBody(w.ctx, p, io.Discard)
	var gone *hub.ContentGoneError
	require.ErrorAs(w, err, &gone)
	require.Equal(w, p.ID, gone.Bundle.ID)
	require.Equal(w, domain.Unavailable, domain.KindOf(err))
}

func TestDeletedContent_IsProducedAgainAfterADownloadMissesIt(t *testing.T) {
	w, d, missing := newCountingWorld(t)
	w.sendNew(2, charges)
	first := w.peekBundle()
	require.Equal(t, "content 1", w.body(first))
	w.deleteContent(first)
	w.requireContentGone(w.peekBundle())
	require.Equal(t, []hub.MissingContent{hub.MissingBundle}, *missing)

	again := w.peekBundle()
	require.Equal(t, "content 2", w.body(again))
	require.NotEqual(t, first.Body.Digest, again.Body.Digest)
	first.Object, first.Body = again.Object, again.Body
	require.Equal(t, first.Bundle, again.Bundle, "only the content has changed")
	require.Equal(t, "content 2", w.body(w.peekBundle()))
	require.Len(t, d.requests(), 2)
	w.dequeueBundle(again)
	w.requireNoData()
}

func TestDeletedContent_IsMadeAgainOnceTheLedgerReportsIt(t *testing.T) {
	w, d, missing := newCountingWorld(t)
	w.sendNew(1, charges)
	for n := 1; n <= 3; n++ {
		peeked := w.peekBundle()
		require.Equal(t, fmt.Sprint("content ", n), w.body(peeked))
		w.deleteContent(peeked)
		for range 2 {
			require.NoError(t, w.hub.ContentGone(w.ctx, peeked.Object))
		}
	}
	found, err := w.hub.Bundle(w.ctx, hub.PeekRequest{Actor: w.actor, BundleID: d.requests()[0].Bundle})
	require.NoError(t, err)
	require.Equal(t, "content 4", w.body(found))
	require.Len(t, d.requests(), 4)
	require.Len(t, *missing, 6)
}

func TestContentGone_ChangesNoOtherBundle(t *testing.T) {
	w, d, missing := newCountingWorld(t)
	w.sendNew(1, charges)
	peeked := w.peekBundle()
	folder, _, _ := strings.Cut(peeked.Object, peeked.ID.String())
	for _, object := range []string{
		"", "x", "payloads/x/0-1", peeked.ID.String(), folder + peeked.ID.String(), folder + peeked.ID.String() + "-",
		folder + peeked.ID.String() + "-" + rt.NewBundleID().String(), folder + rt.NewBundleID().String() + "-" + rt.NewBundleID().String(),
		peeked.Object + "x", "other" + peeked.Object, strings.TrimPrefix(peeked.Object, folder),
	} {
		require.NoError(t, w.hub.ContentGone(w.ctx, object))
	}
	w.dequeueBundle(peeked)
	require.NoError(t, w.hub.ContentGone(w.ctx, peeked.Object))
	require.Len(t, d.requests(), 1)
	require.Empty(t, *missing)
}

func TestAMarkedBundle_IsDequeued(t *testing.T) {
	w, _, _ := newCountingWorld(t)
	w.sendNew(1, charges)
	peeked := w.peekBundle()
	w.deleteContent(peeked)
	require.NoError(t, w.hub.ContentGone(w.ctx, peeked.Object))
	peeked.Gone = true
	w.dequeueBundle(peeked)
	w.requireNoData()
}

// The content of a bundle is deleted, and the domain does not reply. An actor that already has the content must still
// be able to dequeue the bundle.
func TestABundle_StaysOpenIfItsDeletedContentIsNotReplaced(t *testing.T) {
	w, d, _ := newCountingWorld(t)
	w.sendNew(1, charges)
	peeked := w.peekBundle()
	w.deleteContent(peeked)
	require.NoError(t, w.hub.ContentGone(w.ctx, peeked.Object))
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.ContentFailure{Reason: "dataset-not-found"}}, nil
	}
	require.Equal(t, 1, w.requireUnanswered("dataset-not-found").ContentFailure.Failures)
	require.Equal(t, 2, w.requireUnanswered("dataset-not-found").ContentFailure.Failures)
	_, err := w.hub.Dequeue(w.ctx, w.actor, peeked.ID)
	require.NoError(t, err)
	w.requireNoData()
}

// A lifecycle rule deletes the list of event ids together with the content. The hub must store the list again before it
// asks the domain.
func TestDeletedContent_IsRequestedWithItsListOfEvents(t *testing.T) {
	w, d, _ := newCountingWorld(t)
	w.sendNew(3, charges)
	peeked := w.peekBundle()
	require.NoError(t, d.exchange.Delete(w.ctx, peeked.List))
	w.deleteContent(peeked)
	w.requireContentGone(peeked)
	require.Equal(t, "content 2", w.body(w.peekBundle()))
	list, err := d.exchange.Open(w.ctx, repository.Section{Object: peeked.List, Length: 3 * 16})
	require.NoError(t, err)
	require.NoError(t, list.Close())
}

// The new content is deleted, too, after the hub has recorded the domain's second reply and before the Peek returns it.
// The hub must ask the domain once more.
func TestContentDeletedWhileItIsMadeAgain_IsRequestedOnceMore(t *testing.T) {
	store, d := memory.New(memory.Options{}), &contentDomain{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, fmt.Sprint("content ", n))
	}
	var w *world
	answers := &lossyAnswers{Answers: store, then: func(id domain.BundleID) {
		found, _, err := store.Find(t.Context(), w.actor, id)
		require.NoError(t, err)
		require.NoError(t, store.Delete(t.Context(), found.Object))
		require.NoError(t, w.hub.ContentGone(t.Context(), found.Object))
	}}
	w = askingOver(t, store, d, func(o *hub.Options) { o.Answers = answers })
	w.sendNew(1, charges)
	require.Equal(t, "content 2", w.body(w.peekBundle()))
}

func TestConcurrentPeeksOfDeletedContent_GetOneNewContent(t *testing.T) {
	store, d := memory.New(memory.Options{}), &contentDomain{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, fmt.Sprint("content ", n))
	}
	nodes := []*world{askingOver(t, store, d), askingOver(t, store, d)}
	nodes[1].actor = nodes[0].actor
	nodes[0].sendNew(1, charges)
	peeked := nodes[0].peekBundle()
	nodes[0].deleteContent(peeked)
	require.NoError(t, nodes[1].hub.ContentGone(t.Context(), peeked.Object))
	bodies := make([]string, 8)
	var peeks sync.WaitGroup
	for i := range bodies {
		peeks.Go(func() {
			p, err := nodes[i%2].hub.Peek(t.Context(), nodes[0].newRequest())
			if err != nil {
				bodies[i] = err.Error()
				return
			}
			bodies[i] = nodes[0].body(p)
		})
	}
	peeks.Wait()
	for _, body := range bodies {
		require.Equal(t, bodies[0], body)
		require.Contains(t, body, "content ")
		require.NotEqual(t, "content 1", body)
	}
}

func TestADeletedPayload_IsReportedAsDamage(t *testing.T) {
	var missing []hub.MissingContent
	w := newWorld(t, hub.Options{
		Content: map[domain.Origin]domain.ContentMode{domain.TimeSeries: domain.Inline},
		Missing: func(m hub.MissingContent) { missing = append(missing, m) },
	})
	w.sendNew(1, func(e *domain.Event) { e.Payload = []byte(`{"a":1}`) })
	next, err := w.store.NextUnacknowledged(w.ctx, w.actor, rt.AllGroups)
	require.NoError(t, err)
	for e, err := range next.Run.Events(w.ctx) {
		require.NoError(t, err)
		require.NoError(t, w.store.Delete(w.ctx, e.PayloadAt.Object))
	}
	require.Equal(t, domain.Damaged, domain.KindOf(writeBody(w.ctx, w.peekBundle(), io.Discard)))
	require.Equal(t, []hub.MissingContent{hub.MissingPayload}, missing)
}

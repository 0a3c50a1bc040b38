package hub_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

func TestContentRequest_AsksOnceAndRepeatsTheSameBytes(t *testing.T) {
	w, d := newContentWorld(t)
	w.sendNew(3, charges)
	first := w.peekBundle()
	require.Equal(t, "content", w.body(first))
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "other")
	}
	again := w.peekBundle()
	require.Equal(t, first.Bundle, again.Bundle)
	require.Equal(t, "content", w.body(again))
	require.Len(t, d.requests(), 1)
	w.dequeueBundle(again)
	w.requireNoData()
}

func TestContentRequest_DescribesTheBundle(t *testing.T) {
	w, d := newContentWorld(t)
	events := w.sendNew(3, charges)
	before := time.Now()
	peeked, err := w.hub.Peek(t.Context(), hub.PeekRequest{Actor: w.actor, Format: domain.XML, Version: "2.5"})
	require.NoError(t, err)
	asked := d.requests()[0]
	require.WithinRange(t, asked.By, before.Add(25*time.Second), time.Now().Add(28*time.Second), "what is left of 30 s, less what the hub needs")
	asked.By = time.Time{}
	require.Equal(t, hub.ContentRequest{
		Recipient: w.actor, Origin: domain.Charges, Bundle: peeked.ID, ContentType: events[0].ContentType,
		Format: domain.XML, Version: "2.5", List: peeked.List,
	}, asked)
	require.Contains(t, peeked.List, peeked.ID.String()+"_"+w.actor.String())

	r, err := d.exchange.Open(t.Context(), repository.Section{Object: peeked.List, Length: 48})
	require.NoError(t, err)
	list, err := io.ReadAll(r)
	require.NoError(t, err)
	for i := range events {
		id, at := events[i].ID, list[16*i:]
		require.Equal(t, []byte{id[3], id[2], id[1], id[0], id[5], id[4], id[7], id[6]}, at[:8], "the first three groups are little-endian")
		require.Equal(t, id[8:], at[8:16])
	}
}

func TestContentRequest_KeepsTheEventListForLaterRequests(t *testing.T) {
	w, d := newContentWorld(t)
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.ContentFailure{Reason: "dataset-not-available"}}, nil
	}
	w.sendNew(3, charges)
	open := w.requireUnanswered("dataset-not-available")
	require.NoError(t, d.exchange.Delete(t.Context(), open.List), "as if the node had died before it left the list")
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		_, err := d.exchange.Open(t.Context(), repository.Section{Object: r.List, Length: 48})
		require.NoError(t, err)
		return d.storeContent(r, "content")
	}
	require.Equal(t, "content", w.body(w.peekBundle()))
}

func TestContentRequest_ServesAllPeeksOfABundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			<-release
			return d.storeContent(r, "content")
		}
		w.sendNew(1, charges)
		var peeking sync.WaitGroup
		for range 5 {
			peeking.Go(func() {
				peeked, err := w.hub.Peek(w.ctx, w.newRequest())
				if err != nil || peeked.Object == "" {
					t.Errorf("got %v, %v", peeked, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		peeking.Wait()
		require.Len(t, d.requests(), 1)
	})
}

func TestContentRequest_KeepsTheBundleOpenWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, _ int, _ hub.ContentRequest) (hub.Reply, error) { return neverReply(ctx) }
		w.sendNew(1, charges)
		start := time.Now()
		open := w.requireUnanswered(hub.NoAnswer)
		require.Equal(t, 28*time.Second, time.Since(start))
		require.Equal(t, 1, open.ContentFailure.Failures)
		_, err := w.hub.Dequeue(w.ctx, w.actor, open.ID)
		require.ErrorIs(t, err, repository.ErrUnanswered, "nobody confirms what was never handed out")
		require.Equal(t, open.ID, w.requireUnanswered(hub.NoAnswer).ID, "and it is not no data")
		require.Len(t, d.requests(), 2, "each Peek asks again")
	})
}

func TestContentRequest_KeepsALateReplyForTheNextPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			select {
			case <-time.After(40 * time.Second):
				return d.storeContent(r, "late")
			case <-ctx.Done():
				return neverReply(ctx)
			}
		}
		w.sendNew(1, charges)
		w.requireUnanswered(hub.NoAnswer)
		<-time.After(15 * time.Second) // when the reply arrives, no Peek is waiting
		require.Equal(t, "late", w.body(w.peekBundle()))
		require.Len(t, d.requests(), 1)
	})
}

func TestContentRequest_LateReplyServesARepeatedPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			select {
			case <-time.After(40 * time.Second):
				return d.storeContent(r, "late")
			case <-ctx.Done():
				return neverReply(ctx)
			}
		}
		w.sendNew(1, charges)
		w.requireUnanswered(hub.NoAnswer)
		start := time.Now()
		require.Equal(t, "late", w.body(w.peekBundle()))
		require.Equal(t, 12*time.Second, time.Since(start), "a domain that always takes 40 s is served in the end")
	})
}

func TestContentRequest_ContinuesIfOnePeekGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			<-release
			return d.storeContent(r, "content")
		}
		w.sendNew(1, charges)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := w.hub.Peek(ctx, w.newRequest())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		bodies := make(chan string)
		go func() { bodies <- w.body(w.peekBundle()) }()
		synctest.Wait() // without this wait, the next Peek might ask the domain again
		close(release)
		require.Equal(t, "content", <-bodies)
		require.Len(t, d.requests(), 1)
	})
}

package hub_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

func TestContentRequest_CountsFailuresAndMarksTheBundle(t *testing.T) {
	var log bytes.Buffer
	w, d := newContentWorld(t, func(o *hub.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.ContentFailure{Reason: "dataset-not-found", Text: "no such list"}}, nil
	}
	w.sendNew(1, charges)
	for n := 1; n <= 5; n++ {
		failure := w.requireUnanswered("dataset-not-found").ContentFailure
		require.Equal(t, domain.ContentFailure{Failures: n, Reason: "dataset-not-found", Text: "no such list"}, failure)
		require.Equal(t, n == 5, failure.NeedsOperator())
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "an operator is told")
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "content")
	}
	peeked := w.peekBundle()
	require.Equal(t, "content", w.body(peeked), "it is asked nevertheless")
	require.Zero(t, peeked.ContentFailure)
}

func TestContentRequest_CountsUnusableContentAsFailure(t *testing.T) {
	for reason, leave := range map[string]func(*contentDomain, hub.ContentRequest) (hub.Reply, error){
		"foreign-content": func(*contentDomain, hub.ContentRequest) (hub.Reply, error) {
			return hub.Reply{URI: "https://elsewhere.example/container/name"}, nil
		},
		"missing-content": func(d *contentDomain, _ hub.ContentRequest) (hub.Reply, error) {
			uri := d.exchange.Upload("gone", []byte("x"))
			return hub.Reply{URI: uri}, d.exchange.Discard(context.Background(), uri)
		},
		"empty-content": func(d *contentDomain, r hub.ContentRequest) (hub.Reply, error) { return d.storeContent(r, "") },
		"content-too-long": func(d *contentDomain, r hub.ContentRequest) (hub.Reply, error) {
			return d.storeContent(r, "12345678901")
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w, d := newContentWorld(t, func(o *hub.Options) { o.MaxContent = 10 })
			d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return leave(d, r) }
			w.sendNew(1, charges)
			require.Equal(t, 1, w.requireUnanswered(reason).ContentFailure.Failures)
			d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
				return d.storeContent(r, "1234567890")
			}
			require.Equal(t, "1234567890", w.body(w.peekBundle()))
		})
	}
}

func TestContentRequest_DoesNotCountAnUnreachableBus(t *testing.T) {
	w, d := newContentWorld(t)
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{}, domain.Errorf(domain.Unavailable, "no bus")
	}
	w.sendNew(1, charges)
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "content")
	}
	peeked := w.peekBundle()
	require.Equal(t, "content", w.body(peeked))
}

// awayContent is a content store that fails while away is true.
type awayContent struct {
	repository.Content
	away bool
}

func (a *awayContent) Put(ctx context.Context, name string, r io.Reader) error {
	if a.away {
		return domain.Errorf(domain.Unavailable, "no content store")
	}
	return a.Content.Put(ctx, name, r)
}

func TestContentRequest_DoesNotCountAnUnreachableStore(t *testing.T) {
	w, d := newContentWorld(t)
	away := &awayContent{w.store, true}
	h := hub.New(w.store, w.store, away, hub.Options{
		Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: d, Exchange: d.exchange, Answers: w.store,
	})
	defer h.Close()
	w.sendNew(1, charges)
	_, err := h.Peek(w.ctx, w.newRequest())
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	_, ok := errors.AsType[*hub.UnansweredError](err)
	require.False(t, ok)
	away.away = false
	peeked, err := h.Peek(w.ctx, w.newRequest())
	require.NoError(t, err)
	require.Zero(t, peeked.ContentFailure)
}

func TestClose_EndsContentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		d.answer = func(ctx context.Context, _ int, _ hub.ContentRequest) (hub.Reply, error) { return neverReply(ctx) }
		w.sendNew(1, charges)
		var peeking sync.WaitGroup
		peeking.Go(func() {
			if _, err := w.hub.Peek(w.ctx, w.newRequest()); err == nil {
				t.Error("it was answered")
			}
		})
		synctest.Wait()
		w.hub.Close()
		peeking.Wait()
		_, err := w.hub.Peek(w.ctx, w.newRequest())
		require.ErrorContains(t, err, "about to stop")
		require.Len(t, d.requests(), 1)
	})
}

func TestPeek_ReleasesItsSlotWhileItWaitsForADomain(t *testing.T) {
	w, d := newContentWorld(t)
	var said []string
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "content")
	}
	w.sendNew(1, charges)
	req := w.newRequest()
	req.Pause = func() func(context.Context) error {
		said = append(said, "pause")
		return func(context.Context) error {
			said = append(said, "resume")
			return domain.Errorf(domain.Busy, "full")
		}
	}
	_, err := w.hub.Peek(w.ctx, req)
	require.Equal(t, domain.Busy, domain.KindOf(err))
	require.Equal(t, []string{"pause", "resume"}, said)
	_, err = w.hub.Peek(w.ctx, req)
	require.NoError(t, err, "the content is there now")
	require.Len(t, said, 2)
}

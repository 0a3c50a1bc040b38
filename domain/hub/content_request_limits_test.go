package hub_test

import (
	"context"
	"io"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// lossyAnswers loses the result of the first Answer: it writes the answer, calls then, and returns an error.
type lossyAnswers struct {
	repository.Answers
	once sync.Once
	then func(domain.BundleID)
}

func (a *lossyAnswers) Answer(ctx context.Context, to domain.ActorID, id domain.BundleID, object string, body domain.Body) (b domain.Bundle, err error) {
	b, err = a.Answers.Answer(ctx, to, id, object, body)
	a.once.Do(func() {
		a.then(id)
		b, err = domain.Bundle{}, domain.Errorf(domain.Uncertain, "the reply was lost")
	})
	return b, err
}

// The hub has recorded the reply, but the result of the write is lost. Before the hub tries again, the actor dequeues
// the bundle on a second node. The hub must not delete the content.
func TestContentRequest_KeepsContentThatMayBeRecorded(t *testing.T) {
	store, d := memory.New(memory.Options{}), &contentDomain{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "content")
	}
	other := askingOver(t, store, d)
	answers := &lossyAnswers{Answers: store, then: func(id domain.BundleID) {
		peeked := other.peekBundle()
		require.Equal(t, id, peeked.ID)
		other.dequeueBundle(peeked)
	}}
	w := askingOver(t, store, d, func(o *hub.Options) { o.Answers = answers })
	w.actor = other.actor
	events := w.sendNew(1, charges)
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	require.ErrorIs(t, err, domain.ErrNoData, "it is confirmed")

	group := must(w.hub.Groups().GroupOf(events[0].Origin))
	_, err = hub.NewOperator(w.hub, store, nil).Replay(w.ctx, w.actor, group, hub.AdminAction{Who: "kim", Why: "the actor has lost it"})
	require.NoError(t, err)
	require.Equal(t, "content", w.body(w.peekBundle()))
	require.Len(t, d.requests(), 1)
}

// lockedExchange returns an error for reads of content.
type lockedExchange struct {
	*memory.Exchange
	fault error
}

func (l *lockedExchange) Fetch(context.Context, string) (io.ReadCloser, error) { return nil, l.fault }

// For example, Blob Storage responds with a conflict when an archived blob is read.
func TestContentRequest_TreatsAConflictOfTheExchangeAsUnavailable(t *testing.T) {
	d := &contentDomain{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "content")
	}
	locked := &lockedExchange{d.exchange, domain.Errorf(domain.Conflict, "archived")}
	w := askingOver(t, memory.New(memory.Options{}), d, func(o *hub.Options) { o.Exchange = locked })
	w.sendNew(1, charges)
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.ErrorContains(t, err, "archived")
	require.Len(t, d.requests(), 1, "and the domain is not asked again and again")
}

func TestPeek_ReacquiresItsSlotOnlyIfNeeded(t *testing.T) {
	w, d := newContentWorld(t)
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.ContentFailure{Reason: "dataset-not-found"}}, nil
	}
	w.sendNew(1, charges)
	req, resumed := w.newRequest(), 0
	req.Pause = func() func(context.Context) error {
		return func(context.Context) error {
			resumed++
			return domain.Errorf(domain.Busy, "full")
		}
	}
	_, err := w.hub.Peek(w.ctx, req)
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.Zero(t, resumed, "to say so takes no place")

	operator := hub.NewOperator(w.hub, w.store, nil)
	d.answer = func(ctx context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		require.NoError(t, operator.Release(ctx, r.Recipient, r.Bundle, hub.AdminAction{Who: "kim", Why: "it takes too long"}))
		return d.storeContent(r, "content")
	}
	_, err = w.hub.Peek(w.ctx, req)
	require.Equal(t, domain.Busy, domain.KindOf(err), "without a place, it does not look again")
	require.Equal(t, 1, resumed)
}

func TestPeek_CanBeRepeatedAfterItsNodeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		d.answer = func(ctx context.Context, _ int, _ hub.ContentRequest) (hub.Reply, error) { return neverReply(ctx) }
		w.sendNew(1, charges)
		var err error
		var peeking sync.WaitGroup
		peeking.Go(func() { _, err = w.hub.Peek(w.ctx, w.newRequest()) })
		synctest.Wait()
		w.hub.Close()
		peeking.Wait()
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
	})
}

// hangingExchange is an exchange whose removals never end.
type hangingExchange struct{ *memory.Exchange }

func (hangingExchange) Discard(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestContentRequest_DoesNotWaitForAHangingCleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &contentDomain{exchange: memory.NewExchange()}
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			return d.storeContent(r, "content")
		}
		w := askingOver(t, memory.New(memory.Options{}), d, func(o *hub.Options) { o.Exchange = hangingExchange{d.exchange} })
		defer w.hub.Close()
		w.sendNew(1, charges)
		start := time.Now()
		require.Equal(t, "content", w.body(w.peekBundle()))
		require.Zero(t, time.Since(start))
	})
}

// The limit of Peeks that wait for a bundle's content is the only one that applies to them, because they have released
// all other limited resources.
func TestContentRequest_LimitsWaitingPeeksPerActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t, func(o *hub.Options) { o.ListenersPerActor = 3 })
		defer w.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			<-release
			return d.storeContent(r, "content")
		}
		w.sendNew(1, charges)
		impatient, leave := context.WithCancel(w.ctx)
		var peeking sync.WaitGroup
		for n := range 3 {
			peeking.Go(func() {
				ctx := w.ctx
				if n == 0 {
					ctx = impatient
				}
				if _, err := w.hub.Peek(ctx, w.newRequest()); (err == nil) != (n > 0) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		_, err := w.hub.Peek(w.ctx, w.newRequest())
		require.Equal(t, domain.Busy, domain.KindOf(err))
		leave()
		synctest.Wait()
		peeking.Go(func() {
			if _, err := w.hub.Peek(w.ctx, w.newRequest()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(release)
		peeking.Wait()
		require.Len(t, d.requests(), 1)
	})
}

// slowContent is a content store that takes long to store an object.
type slowContent struct {
	repository.Content
	keeping atomic.Int64
	release chan struct{}
}

func (s *slowContent) Put(ctx context.Context, name string, r io.Reader) error {
	s.keeping.Add(1)
	<-s.release
	s.keeping.Add(-1)
	return s.Content.Put(ctx, name, r)
}

// After an outage of the domain, many replies arrive at the same time. The hub must limit the memory for their content.
func TestContentRequest_LimitsMemoryForSimultaneousReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		slow := &slowContent{Content: w.store, release: make(chan struct{})}
		h := hub.New(w.store, w.store, slow, hub.Options{
			Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
			Requester: d, Exchange: d.exchange, Answers: w.store,
		})
		defer h.Close()
		var peeking sync.WaitGroup
		for range 100 {
			w.actor = rt.NewActor()
			w.sendNew(1, charges)
			req := w.newRequest()
			peeking.Go(func() {
				if _, err := h.Peek(w.ctx, req); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		require.Len(t, d.requests(), 100)
		require.EqualValues(t, 16, slow.keeping.Load())
		close(slow.release)
		peeking.Wait()
	})
}

// A heavyRun yields events that each contain a large array. yielded tells whether the last array is still in memory.
type heavyRun struct {
	repository.Run
	yielded *weak.Pointer[[1024]byte]
}

func (r heavyRun) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	return func(yield func(repository.StoredEvent, error) bool) {
		for e, err := range r.Run.Events(ctx) {
			mark := new([1024]byte)
			*r.yielded = weak.Make(mark)
			e.Payload = mark[:]
			if !yield(e, err) {
				return
			}
		}
	}
}

// While a Peek waits for a domain, the events of the bundle must not occupy memory.
func TestContentRequest_FreesEventsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		var yielded weak.Pointer[[1024]byte]
		release := make(chan struct{})
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			<-release
			return d.storeContent(r, "content")
		}
		w.replaceCalls(replacedStore{
			next: func(ctx context.Context, actor domain.ActorID, groups []domain.Group) (repository.Next, error) {
				n, err := w.store.NextUnacknowledged(ctx, actor, groups)
				if n.Run != nil {
					n.Run = heavyRun{n.Run, &yielded}
				}
				return n, err
			},
			add: func(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error) {
				return w.store.Add(ctx, b, run.(heavyRun).Run)
			},
		}, hub.Options{
			Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
			Requester: d, Exchange: d.exchange, Answers: w.store,
		})
		defer w.hub.Close()
		w.sendNew(3, charges)
		var peeking sync.WaitGroup
		peeking.Go(func() {
			if _, err := w.hub.Peek(w.ctx, w.newRequest()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		require.Len(t, d.requests(), 1)
		runtime.GC()
		require.True(t, yielded.Value() == nil, "the last event is still in memory")
		close(release)
		peeking.Wait()
	})
}

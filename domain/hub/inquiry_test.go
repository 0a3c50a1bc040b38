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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A domainTeam is a domain that is asked for content; each test says what it does.
type domainTeam struct {
	exchange *memory.Exchange

	mu     sync.Mutex
	asked  []hub.ContentRequest
	answer func(ctx context.Context, n int, r hub.ContentRequest) (hub.Reply, error) // to the n-th request, from 1
}

func (d *domainTeam) Request(ctx context.Context, r hub.ContentRequest) (hub.Reply, error) {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	n, answer := len(d.asked), d.answer
	d.mu.Unlock()
	return answer(ctx, n, r)
}

func (d *domainTeam) requests() []hub.ContentRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]hub.ContentRequest(nil), d.asked...)
}

// leaves is a reply that names content which it leaves in the exchange.
func (d *domainTeam) leaves(r hub.ContentRequest, content string) (hub.Reply, error) {
	return hub.Reply{URI: d.exchange.Leave(hub.ProcessID(r.Bundle, r.Recipient)+"_data", []byte(content))}, nil
}

// silent waits for the end of the inquiry.
func silent(ctx context.Context) (hub.Reply, error) {
	<-ctx.Done()
	return hub.Reply{}, ctx.Err()
}

// newAsking returns a world whose domain Charges is asked for content. By default it
// answers at once.
func newAsking(t testing.TB, change ...func(*hub.Options)) (*world, *domainTeam) {
	d := &domainTeam{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "content") }
	return askingOver(t, memory.New(memory.Options{}), d, change...), d
}

func askingOver(t testing.TB, store *memory.Store, d *domainTeam, change ...func(*hub.Options)) *world {
	opts := hub.Options{
		Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: d, Exchange: d.exchange, Answers: store,
	}
	for _, c := range change {
		c(&opts)
	}
	w := &world{t, t.Context(), store, hub.New(store, store, store, opts), rt.NewActor()}
	t.Cleanup(w.hub.Close)
	return w
}

func charges(e *domain.Event) { e.Origin = domain.Charges }

// isUnanswered demands that a Peek finds a bundle open that waits for its domain.
func (w *world) isUnanswered(reason string) domain.Bundle {
	w.Helper()
	_, err := w.hub.Peek(w.ctx, w.request())
	unanswered, ok := errors.AsType[*hub.UnansweredError](err)
	require.True(w, ok, "got %v", err)
	require.Equal(w, domain.Unavailable, domain.KindOf(err))
	require.Equal(w, reason, unanswered.Bundle.Trouble.Reason)
	return unanswered.Bundle
}

func TestABundleIsAnsweredOnceAndRepeatedByteForByte(t *testing.T) {
	w, d := newAsking(t)
	w.sent(3, charges)
	first := w.peeks()
	require.Equal(t, "content", w.body(first))
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "other") }
	again := w.peeks()
	require.Equal(t, first.Bundle, again.Bundle)
	require.Equal(t, "content", w.body(again))
	require.Len(t, d.requests(), 1)
	w.dequeues(again)
	w.nothingIn()
}

func TestTheDomainIsToldWhatItHasToMake(t *testing.T) {
	w, d := newAsking(t)
	events := w.sent(3, charges)
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

func TestTheListIsThereForWhoeverAsksLater(t *testing.T) {
	w, d := newAsking(t)
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.Trouble{Reason: "dataset-not-available"}}, nil
	}
	w.sent(3, charges)
	open := w.isUnanswered("dataset-not-available")
	require.NoError(t, d.exchange.Delete(t.Context(), open.List), "as if the node had died before it left the list")
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		_, err := d.exchange.Open(t.Context(), repository.Section{Object: r.List, Length: 48})
		require.NoError(t, err)
		return d.leaves(r, "content")
	}
	require.Equal(t, "content", w.body(w.peeks()))
}

func TestOneInquiryServesAllPeeksOfABundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			<-release
			return d.leaves(r, "content")
		}
		w.sent(1, charges)
		var peeking sync.WaitGroup
		for range 5 {
			peeking.Go(func() {
				peeked, err := w.hub.Peek(w.ctx, w.request())
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

func TestADomainThatSaysNothingKeepsTheBundleOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, _ int, _ hub.ContentRequest) (hub.Reply, error) { return silent(ctx) }
		w.sent(1, charges)
		start := time.Now()
		open := w.isUnanswered(hub.NoAnswer)
		require.Equal(t, 28*time.Second, time.Since(start))
		require.Equal(t, 1, open.Trouble.Failures)
		_, err := w.hub.Dequeue(w.ctx, w.actor, open.ID)
		require.ErrorIs(t, err, repository.ErrUnanswered, "nobody confirms what was never handed out")
		require.Equal(t, open.ID, w.isUnanswered(hub.NoAnswer).ID, "and it is not no data")
		require.Len(t, d.requests(), 2, "each Peek asks again")
	})
}

func TestALateAnswerIsKeptForTheNextPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			select {
			case <-time.After(40 * time.Second):
				return d.leaves(r, "late")
			case <-ctx.Done():
				return silent(ctx)
			}
		}
		w.sent(1, charges)
		w.isUnanswered(hub.NoAnswer)
		<-time.After(15 * time.Second) // of the bubble's clock: the answer comes, and nobody waits for it
		require.Equal(t, "late", w.body(w.peeks()))
		require.Len(t, d.requests(), 1)
	})
}

func TestALateAnswerServesWhoHasAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			select {
			case <-time.After(40 * time.Second):
				return d.leaves(r, "late")
			case <-ctx.Done():
				return silent(ctx)
			}
		}
		w.sent(1, charges)
		w.isUnanswered(hub.NoAnswer)
		start := time.Now()
		require.Equal(t, "late", w.body(w.peeks()))
		require.Equal(t, 12*time.Second, time.Since(start), "a domain that always takes 40 s is served in the end")
	})
}

func TestWhoGivesUpLeavesTheInquiryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
			<-release
			return d.leaves(r, "content")
		}
		w.sent(1, charges)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := w.hub.Peek(ctx, w.request())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		bodies := make(chan string)
		go func() { bodies <- w.body(w.peeks()) }()
		synctest.Wait() // whoever asks when the answer is there may ask anew
		close(release)
		require.Equal(t, "content", <-bodies)
		require.Len(t, d.requests(), 1)
	})
}

func TestAFailureIsToldCountedAndInTheEndMarked(t *testing.T) {
	var log bytes.Buffer
	w, d := newAsking(t, func(o *hub.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.Trouble{Reason: "dataset-not-found", Text: "no such list"}}, nil
	}
	w.sent(1, charges)
	for n := 1; n <= 5; n++ {
		trouble := w.isUnanswered("dataset-not-found").Trouble
		require.Equal(t, domain.Trouble{Failures: n, Reason: "dataset-not-found", Text: "no such list"}, trouble)
		require.Equal(t, n == 5, trouble.IsMarked())
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "an operator is told")
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "content") }
	peeked := w.peeks()
	require.Equal(t, "content", w.body(peeked), "it is asked all the same")
	require.Zero(t, peeked.Trouble)
}

func TestContentThatCannotBeTakenIsTheDomainsFailure(t *testing.T) {
	for reason, leave := range map[string]func(*domainTeam, hub.ContentRequest) (hub.Reply, error){
		"foreign-content": func(*domainTeam, hub.ContentRequest) (hub.Reply, error) {
			return hub.Reply{URI: "https://elsewhere.example/container/name"}, nil
		},
		"missing-content": func(d *domainTeam, _ hub.ContentRequest) (hub.Reply, error) {
			uri := d.exchange.Leave("gone", []byte("x"))
			return hub.Reply{URI: uri}, d.exchange.Discard(context.Background(), uri)
		},
		"empty-content":    func(d *domainTeam, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "") },
		"content-too-long": func(d *domainTeam, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "12345678901") },
	} {
		t.Run(reason, func(t *testing.T) {
			w, d := newAsking(t, func(o *hub.Options) { o.MaxContent = 10 })
			d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return leave(d, r) }
			w.sent(1, charges)
			require.Equal(t, 1, w.isUnanswered(reason).Trouble.Failures)
			d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
				return d.leaves(r, "1234567890")
			}
			require.Equal(t, "1234567890", w.body(w.peeks()))
		})
	}
}

func TestABusThatIsAwayIsNotTheDomainsFailure(t *testing.T) {
	w, d := newAsking(t)
	d.answer = func(context.Context, int, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{}, domain.Errorf(domain.Unavailable, "no bus")
	}
	w.sent(1, charges)
	_, err := w.hub.Peek(w.ctx, w.request())
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "content") }
	peeked := w.peeks()
	require.Equal(t, "content", w.body(peeked))
}

// awayContent is a content store that cannot be reached.
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

func TestAContentStoreThatIsAwayIsNotTheDomainsFailure(t *testing.T) {
	w, d := newAsking(t)
	away := &awayContent{w.store, true}
	h := hub.New(w.store, w.store, away, hub.Options{
		Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: d, Exchange: d.exchange, Answers: w.store,
	})
	defer h.Close()
	w.sent(1, charges)
	_, err := h.Peek(w.ctx, w.request())
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	_, ok := errors.AsType[*hub.UnansweredError](err)
	require.False(t, ok)
	away.away = false
	peeked, err := h.Peek(w.ctx, w.request())
	require.NoError(t, err)
	require.Zero(t, peeked.Trouble)
}

func TestOfTwoAnswersTheFirstIsHandedOutByAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		other := askingOver(t, w.store, d)
		defer other.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-release
				return d.leaves(r, "slow")
			}
			return d.leaves(r, "fast")
		}
		w.sent(1, charges)
		var slow string
		var peeking sync.WaitGroup
		peeking.Go(func() { slow = w.body(w.peeks()) })
		synctest.Wait()
		other.actor = w.actor
		require.Equal(t, "fast", other.body(other.peeks()))
		close(release)
		peeking.Wait()
		require.Equal(t, "fast", slow)
	})
}

// A counting content store knows the names of what is in it.
type counting struct {
	repository.Content
	mu    sync.Mutex
	names map[string]bool
}

func (c *counting) Put(ctx context.Context, name string, r io.Reader) error {
	err := c.Content.Put(ctx, name, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.names[name] = true
	}
	return err
}

func (c *counting) Delete(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.names, name)
	return c.Content.Delete(ctx, name)
}

func TestOfTwoAnswersTheSecondLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		content := &counting{Content: w.store, names: make(map[string]bool)}
		node := func() *hub.Hub {
			return hub.New(w.store, w.store, content, hub.Options{
				Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
				Requester: d, Exchange: d.exchange, Answers: w.store,
			})
		}
		first, second := node(), node()
		release := make(chan struct{})
		d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-release
			}
			return d.leaves(r, "content")
		}
		w.sent(1, charges)
		var peeking sync.WaitGroup
		peeking.Go(func() { _, _ = first.Peek(w.ctx, w.request()) })
		synctest.Wait()
		peeked, err := second.Peek(w.ctx, w.request())
		require.NoError(t, err)
		close(release)
		peeking.Wait()
		synctest.Wait() // the tidying is over
		first.Close()
		second.Close()
		w.hub.Close()
		require.Equal(t, map[string]bool{peeked.Object: true}, content.names)
	})
}

func TestWhoseDomainFailsHandsOutWhatAnotherNodeHasGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		other := askingOver(t, w.store, d)
		defer other.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-release
				return hub.Reply{Failure: domain.Trouble{Reason: "dataset-not-found"}}, nil
			}
			return d.leaves(r, "content")
		}
		w.sent(1, charges)
		var got string
		var peeking sync.WaitGroup
		peeking.Go(func() { got = w.body(w.peeks()) })
		synctest.Wait()
		other.actor = w.actor
		require.Equal(t, "content", other.body(other.peeks()))
		close(release)
		peeking.Wait()
		require.Equal(t, "content", got)
	})
}

func TestALateFailureCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, n int, _ hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-time.After(40 * time.Second)
			}
			return hub.Reply{Failure: domain.Trouble{Reason: "internal-error"}}, nil
		}
		w.sent(1, charges)
		require.Equal(t, 1, w.isUnanswered(hub.NoAnswer).Trouble.Failures)
		<-time.After(time.Minute) // of the bubble's clock: the failure comes, and there was none in time
		require.Equal(t, 2, w.isUnanswered("internal-error").Trouble.Failures, "the second is that of the second request")
	})
}

// A crowdedExchange gets every list a moment before the hub puts it, as another node
// would leave it.
type crowdedExchange struct{ *memory.Exchange }

func (e crowdedExchange) Put(ctx context.Context, name string, r io.Reader) error {
	list, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := e.Exchange.Put(ctx, name, bytes.NewReader(list)); err != nil {
		return err
	}
	return e.Exchange.Put(ctx, name, bytes.NewReader(list))
}

func TestAListThatAnotherNodeHasLeftIsTheSame(t *testing.T) {
	w, _ := newAsking(t, func(o *hub.Options) { o.Exchange = crowdedExchange{o.Exchange.(*memory.Exchange)} })
	w.sent(2, charges)
	require.Equal(t, "content", w.body(w.peeks()))
}

func TestABundleThatAnOperatorTakesBackWhileItsDomainIsAskedIsNotHandedOut(t *testing.T) {
	w, d := newAsking(t)
	operator := hub.NewOperator(w.hub, w.store, nil)
	first := make(chan domain.BundleID, 1)
	d.answer = func(ctx context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
		if n == 1 {
			first <- r.Bundle
			require.NoError(t, operator.Release(ctx, r.Recipient, r.Bundle, hub.Order{Who: "kim", Why: "it takes too long"}))
		}
		return d.leaves(r, "of "+r.Bundle.String())
	}
	w.sent(1, charges)
	peeked := w.peeks()
	require.NotEqual(t, <-first, peeked.ID)
	require.Equal(t, "of "+peeked.ID.String(), w.body(peeked))
}

func TestTheDownloadOfABundleCanGoOnAnywhere(t *testing.T) {
	w, d := newAsking(t)
	content := strings.Repeat("0123456789", 10_000)
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, content) }
	w.sent(1, charges)
	peeked := w.peeks()
	require.EqualValues(t, len(content), peeked.Body.Length)
	body, err := peeked.Open(w.ctx)
	require.NoError(t, err)
	for _, at := range []int64{99_990, 0, 50_005, 100_000} {
		_, err := body.Seek(at, io.SeekStart)
		require.NoError(t, err)
		rest, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, content[at:], string(rest))
	}
	require.NoError(t, body.Close())
	found, err := w.hub.Bundle(w.ctx, hub.PeekRequest{Actor: w.actor, BundleID: peeked.ID})
	require.NoError(t, err)
	require.Equal(t, content, w.body(found))
}

// turned is a content store that gives back other bytes than it got.
type turned struct{ repository.Content }

func (s turned) Open(ctx context.Context, at repository.Section) (io.ReadCloser, error) {
	r, err := s.Content.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	b[0] ^= 1
	return io.NopCloser(bytes.NewReader(b)), nil
}

func TestContentWithATurnedBitIsNotHandedOutWhole(t *testing.T) {
	w, d := newAsking(t)
	h := hub.New(w.store, w.store, turned{w.store}, hub.Options{
		Content:   map[domain.Origin]domain.ContentMode{domain.Charges: domain.Request},
		Requester: d, Exchange: d.exchange, Answers: w.store,
	})
	defer h.Close()
	w.sent(1, charges)
	peeked, err := h.Peek(w.ctx, w.request())
	require.NoError(t, err)
	body, err := peeked.Open(w.ctx)
	require.NoError(t, err)
	_, err = io.ReadAll(body)
	require.Equal(t, domain.Damaged, domain.KindOf(err))
	require.Equal(t, domain.Damaged, domain.KindOf(body.Err()))
	require.NoError(t, body.Close())
}

func TestAHubThatClosesAsksNobodyAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newAsking(t)
		d.answer = func(ctx context.Context, _ int, _ hub.ContentRequest) (hub.Reply, error) { return silent(ctx) }
		w.sent(1, charges)
		var peeking sync.WaitGroup
		peeking.Go(func() {
			if _, err := w.hub.Peek(w.ctx, w.request()); err == nil {
				t.Error("it was answered")
			}
		})
		synctest.Wait()
		w.hub.Close()
		peeking.Wait()
		_, err := w.hub.Peek(w.ctx, w.request())
		require.ErrorContains(t, err, "about to stop")
		require.Len(t, d.requests(), 1)
	})
}

func TestWhoWaitsForADomainLetsGoOfItsPlace(t *testing.T) {
	w, d := newAsking(t)
	var said []string
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) { return d.leaves(r, "content") }
	w.sent(1, charges)
	req := w.request()
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

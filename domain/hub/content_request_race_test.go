package hub_test

import (
	"bytes"
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
	"github.com/messagehub/messagehub/repository/memory"
)

func TestContentRequest_FirstAnswerWinsOnAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		other := askingOver(t, w.store, d)
		defer other.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-release
				return d.storeContent(r, "slow")
			}
			return d.storeContent(r, "fast")
		}
		w.sendNew(1, charges)
		var slow string
		var peeking sync.WaitGroup
		peeking.Go(func() { slow = w.body(w.peekBundle()) })
		synctest.Wait()
		other.actor = w.actor
		require.Equal(t, "fast", other.body(other.peekBundle()))
		close(release)
		peeking.Wait()
		require.Equal(t, "fast", slow)
	})
}

// recordingContent is a content store that records the names of stored objects.
type recordingContent struct {
	repository.Content
	mu    sync.Mutex
	names map[string]bool
}

func (c *recordingContent) Put(ctx context.Context, name string, r io.Reader) error {
	err := c.Content.Put(ctx, name, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.names[name] = true
	}
	return err
}

func (c *recordingContent) Delete(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.names, name)
	return c.Content.Delete(ctx, name)
}

func TestContentRequest_SecondAnswerLeavesNoObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		content := &recordingContent{Content: w.store, names: make(map[string]bool)}
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
			return d.storeContent(r, "content")
		}
		w.sendNew(1, charges)
		var peeking sync.WaitGroup
		peeking.Go(func() { _, _ = first.Peek(w.ctx, w.newRequest()) })
		synctest.Wait()
		peeked, err := second.Peek(w.ctx, w.newRequest())
		require.NoError(t, err)
		close(release)
		peeking.Wait()
		synctest.Wait() // wait until the clean-up has ended
		first.Close()
		second.Close()
		w.hub.Close()
		require.Equal(t, map[string]bool{peeked.Object: true}, content.names)
	})
}

func TestContentRequest_UsesTheAnswerOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		other := askingOver(t, w.store, d)
		defer other.hub.Close()
		release := make(chan struct{})
		d.answer = func(_ context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-release
				return hub.Reply{Failure: domain.ContentFailure{Reason: "dataset-not-found"}}, nil
			}
			return d.storeContent(r, "content")
		}
		w.sendNew(1, charges)
		var got string
		var peeking sync.WaitGroup
		peeking.Go(func() { got = w.body(w.peekBundle()) })
		synctest.Wait()
		other.actor = w.actor
		require.Equal(t, "content", other.body(other.peekBundle()))
		close(release)
		peeking.Wait()
		require.Equal(t, "content", got)
	})
}

func TestContentRequest_CountsALateFailureOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newContentWorld(t)
		defer w.hub.Close()
		d.answer = func(ctx context.Context, n int, _ hub.ContentRequest) (hub.Reply, error) {
			if n == 1 {
				<-time.After(40 * time.Second)
			}
			return hub.Reply{Failure: domain.ContentFailure{Reason: "internal-error"}}, nil
		}
		w.sendNew(1, charges)
		require.Equal(t, 1, w.requireUnanswered(hub.NoAnswer).ContentFailure.Failures)
		<-time.After(time.Minute) // the failure arrives in this minute, too late to be counted
		require.Equal(t, 2, w.requireUnanswered("internal-error").ContentFailure.Failures, "the second is that of the second request")
	})
}

// A crowdedExchange stores each list just before the hub does, as a second node could.
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

func TestContentRequest_AcceptsTheEventListOfAnotherNode(t *testing.T) {
	w, _ := newContentWorld(t, func(o *hub.Options) { o.Exchange = crowdedExchange{o.Exchange.(*memory.Exchange)} })
	w.sendNew(2, charges)
	require.Equal(t, "content", w.body(w.peekBundle()))
}

func TestContentRequest_DoesNotReturnAReleasedBundle(t *testing.T) {
	w, d := newContentWorld(t)
	operator := hub.NewOperator(w.hub, w.store, nil)
	first := make(chan domain.BundleID, 1)
	d.answer = func(ctx context.Context, n int, r hub.ContentRequest) (hub.Reply, error) {
		if n == 1 {
			first <- r.Bundle
			require.NoError(t, operator.Release(ctx, r.Recipient, r.Bundle, hub.AdminAction{Who: "kim", Why: "it takes too long"}))
		}
		return d.storeContent(r, "of "+r.Bundle.String())
	}
	w.sendNew(1, charges)
	peeked := w.peekBundle()
	require.NotEqual(t, <-first, peeked.ID)
	require.Equal(t, "of "+peeked.ID.String(), w.body(peeked))
}

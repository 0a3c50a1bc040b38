package hub_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A contentDomain is a domain that produces content. Each test sets its replies.
type contentDomain struct {
	exchange *memory.Exchange

	mu     sync.Mutex
	asked  []hub.ContentRequest
	answer func(ctx context.Context, n int, r hub.ContentRequest) (hub.Reply, error) // answer replies to request n, where n starts at 1
}

func (d *contentDomain) Request(ctx context.Context, r hub.ContentRequest) (hub.Reply, error) {
	d.mu.Lock()
	d.asked = append(d.asked, r)
	n, answer := len(d.asked), d.answer
	d.mu.Unlock()
	return answer(ctx, n, r)
}

func (d *contentDomain) requests() []hub.ContentRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]hub.ContentRequest(nil), d.asked...)
}

// storeContent stores content in the exchange, and returns a reply with its URI.
func (d *contentDomain) storeContent(r hub.ContentRequest, content string) (hub.Reply, error) {
	return hub.Reply{URI: d.exchange.Upload(hub.ProcessID(r.Bundle, r.Recipient)+"_data", []byte(content))}, nil
}

// neverReply waits until ctx ends and does not reply.
func neverReply(ctx context.Context) (hub.Reply, error) {
	<-ctx.Done()
	return hub.Reply{}, ctx.Err()
}

// newContentWorld returns a world in which the domain Charges produces content. By default, it replies immediately.
func newContentWorld(t testing.TB, change ...func(*hub.Options)) (*world, *contentDomain) {
	d := &contentDomain{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
		return d.storeContent(r, "content")
	}
	return askingOver(t, memory.New(memory.Options{}), d, change...), d
}

func askingOver(t testing.TB, store *memory.Store, d *contentDomain, change ...func(*hub.Options)) *world {
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

// requireUnanswered checks that a Peek fails because the domain has not produced the content.
func (w *world) requireUnanswered(reason string) domain.Bundle {
	w.Helper()
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	unanswered, ok := errors.AsType[*hub.UnansweredError](err)
	require.True(w, ok, "got %v", err)
	require.Equal(w, domain.Unavailable, domain.KindOf(err))
	require.Equal(w, reason, unanswered.Bundle.ContentFailure.Reason)
	return unanswered.Bundle
}

package api_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

func TestPeeksBeyondTheLimitWaitTheirTurn(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.Limits.Peeks = 1
		o.Deadline = 8 * time.Second
	})
	begun, mayGoOn := make(chan struct{}), make(chan struct{})
	f.store.next = func(ctx context.Context) error { close(begun); <-mayGoOn; f.store.next = nil; return nil }
	first := make(chan int)
	go func() { first <- f.do("GET", "/v1/peek", "").status }()
	<-begun
	require.Equal(t, http.StatusTooManyRequests, f.do("GET", "/v1/peek", "").status)
	close(mayGoOn)
	require.Equal(t, http.StatusNoContent, <-first)
	require.Equal(t, http.StatusNoContent, f.do("GET", "/v1/peek", "").status)
}

func TestPeek_OfASlowActorLeavesSlotsForOthers(t *testing.T) {
	const room, slow = 8, "slow"
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.Limits.Peeks = room })
	begun, mayGoOn := make(chan struct{}, 2*room), make(chan struct{})
	var underWay, most atomic.Int64
	f.store.nextOf = func(actor domain.ActorID) {
		if actor.String() == slow {
			most.Store(max(most.Load(), underWay.Add(1)))
			defer underWay.Add(-1)
			begun <- struct{}{}
			<-mayGoOn
		}
	}
	answers := make(chan int, 2*room)
	for range 2 * room {
		go func() { answers <- f.do("GET", "/v1/peek", "", "X-Actor-Id", slow).status }()
	}
	<-begun
	for range room {
		require.Equal(t, http.StatusNoContent, f.do("GET", "/v1/peek", "").status)
	}
	close(mayGoOn)
	for range 2 * room {
		require.Equal(t, http.StatusNoContent, <-answers, "they have only waited")
	}
	require.LessOrEqual(t, most.Load(), int64(room/2))
}

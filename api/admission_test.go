package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// sends begins a request whose body goes on as long as the test writes to it.
func (f *fixture) sends(t *testing.T) (body *io.PipeWriter, answered <-chan struct{}) {
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/v1/data-available", r)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	return w, done
}

func TestBodiesThatFindNoRoomAreAskedToComeAgain(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) {
		o.Limits.RequestBody, o.Limits.Bodies = 256<<10, 1<<20
		o.Deadline = 16 * time.Second // of which a quarter is patience
	})
	big := "[" + strings.Repeat(" ", 240<<10)
	var bodies []*io.PipeWriter
	var answers []<-chan struct{}
	for range 6 { // which have all the room between them, and now take their time
		body, answered := f.sends(t)
		_, err := io.WriteString(body, big)
		require.NoError(t, err)
		bodies, answers = append(bodies, body), append(answers, answered)
	}
	require.Eventually(t, func() bool { // once the hub has read what was sent to it
		return f.do("POST", "/v1/data-available", big+"]", "Content-Type", "application/json").status == http.StatusTooManyRequests
	}, 12*time.Second, time.Millisecond)
	require.Equal(t, http.StatusAccepted, f.do("POST", "/v1/data-available", "[]", "Content-Type", "application/json").status, "a small body needs no room")

	for i, body := range bodies {
		require.NoError(t, body.CloseWithError(io.ErrUnexpectedEOF))
		<-answers[i]
	}
	require.Eventually(t, func() bool {
		return f.do("POST", "/v1/data-available", big+"]", "Content-Type", "application/json").status == http.StatusAccepted
	}, 10*time.Second, time.Millisecond, "a body that has gone gives its room back")
}

func TestSendersOfNothingTakeNoRoom(t *testing.T) {
	f := serve(t, func(o *api.Options, _ *hub.Options) { o.Limits.RequestBody, o.Limits.Bodies = 256<<10, 1<<20 })
	for range 40 {
		body, answered := f.sends(t)
		_, err := io.WriteString(body, "[")
		require.NoError(t, err)
		defer func() { _ = body.CloseWithError(io.ErrUnexpectedEOF); <-answered }()
	}
	big := "[" + strings.Repeat(" ", 240<<10) + "]"
	require.Equal(t, http.StatusAccepted, f.do("POST", "/v1/data-available", big, "Content-Type", "application/json").status)
}

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

func TestAnActorWhosePeeksTakeLongLeavesRoomForTheOthers(t *testing.T) {
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

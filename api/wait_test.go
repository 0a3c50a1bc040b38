package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

const waitRequest = "GET /v1/peek?wait=20s HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: " + actor + "\r\n\r\n"

// sendWaiting sends a request that waits, and returns a channel for its response.
func (b *bubble) sendWaiting(text string) <-chan *http.Response {
	answered := make(chan *http.Response, 1)
	conn := b.dial()
	go func() { answered <- b.exchange(conn, text) }()
	synctest.Wait()
	return answered
}

// after requires that a response with the given status arrives at the time want after start.
func (b *bubble) after(start time.Time, want time.Duration, status int, answered <-chan *http.Response) {
	b.t.Helper()
	require.Equal(b.t, status, (<-answered).StatusCode)
	require.Equal(b.t, want, time.Since(start))
}

func TestWaitingPeek_ReturnsAnEventThatArrives(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answered := b.sendWaiting(waitRequest)
		<-time.After(1500 * time.Millisecond)
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, 1500*time.Millisecond, 200, answered)
	})
}

func TestWaitingPeek_ReturnsExistingDataImmediately(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, 0, 200, b.sendWaiting(waitRequest))
	})
}

func TestWaitingPeek_EndsWith204WithoutData(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answer := <-b.sendWaiting(waitRequest)
		require.Equal(b.t, 204, answer.StatusCode)
		require.Equal(b.t, "0", answer.Header.Get("MessageHub-Backlog"))
		require.Equal(b.t, 20*time.Second, time.Since(start))
	})
}

func TestWaitingPeek_ReturnsAnEventThatAnotherNodeSaved(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		answered := b.sendWaiting(waitRequest)
		<-time.After(5 * time.Second)
		other := hub.New(b.f.store.Store, b.f.store.Store, b.f.store.Store, hub.Options{})
		recipient, err := domain.ParseActorID(actor)
		require.NoError(b.t, err)
		_, err = other.Ingest(b.t.Context(), []domain.Event{repositorytest.Event(recipient)})
		require.NoError(b.t, err)
		start := time.Now()
		require.Equal(b.t, 200, (<-answered).StatusCode)
		require.Less(b.t, time.Since(start), 13*time.Second)
	})
}

func TestAWaitMayBeLongerThanTheDeadline(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answered := b.sendWaiting("GET /v1/peek/timeseries?wait=60 HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: " + actor + "\r\n\r\n")
		<-time.After(55 * time.Second)
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, 55*time.Second, 200, answered)
	})
}

func TestWorkAfterAWaitStillHasItsDeadline(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answered := b.sendWaiting(waitRequest)
		b.f.store.next = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, 50*time.Second, 503, answered)
	})
}

func TestWaitingPeek_HoldsNoStoreSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *api.Options, _ *hub.Options) { o.Limits.Peeks = 1 })
		b := serveBubble(t, f)
		var answers []<-chan *http.Response
		for range 8 {
			answers = append(answers, b.sendWaiting(waitRequest))
		}
		require.Equal(t, 202, b.exchange(b.dial(), post(array(newEvent(1, "recipient", "other")))).StatusCode)
		other := "GET /v1/peek HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: other\r\n\r\n"
		start := time.Now()
		resp := b.exchange(b.dial(), other)
		require.Equal(t, 200, resp.StatusCode)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.Zero(t, time.Since(start))
		for _, answered := range answers {
			b.after(start, 20*time.Second, 204, answered)
		}
	})
}

func TestWait_LimitsTheRequestsOfAnActor(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		var answers []<-chan *http.Response
		for range 8 {
			answers = append(answers, b.sendWaiting(waitRequest))
		}
		refused := <-b.sendWaiting(waitRequest)
		require.Equal(b.t, 429, refused.StatusCode)
		require.NotEmpty(b.t, refused.Header.Get("Retry-After"))
		detail, err := io.ReadAll(refused.Body)
		require.NoError(b.t, err)
		require.Contains(b.t, string(detail), "8 Peeks of actor "+actor+" wait on this node, which is the maximum")
		other := b.sendWaiting("GET /v1/peek?wait=10 HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: other\r\n\r\n")
		b.after(start, 10*time.Second, 204, other)

		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		for _, answered := range answers {
			b.after(start, 10*time.Second, 200, answered)
		}
		b.after(start, 10*time.Second, 200, b.sendWaiting(waitRequest))
	})
}

func TestAClientThatDisconnectsFreesItsPlace(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		for range 20 {
			conn := b.dial()
			_, err := io.WriteString(conn, waitRequest)
			require.NoError(b.t, err)
			synctest.Wait()
			require.NoError(b.t, conn.Close())
			synctest.Wait()
		}
		start := time.Now()
		b.after(start, 20*time.Second, 204, b.sendWaiting(waitRequest))
	})
}

func TestWaitingPeek_EndsWhenTheServerDrains(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answered := b.sendWaiting(waitRequest)
		<-time.After(time.Second)
		b.f.server.SetDraining()
		b.after(start, time.Second, 204, answered)
		b.after(start, time.Second, 204, b.sendWaiting(waitRequest))
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, time.Second, 200, b.sendWaiting(waitRequest))
	})
}

func TestWait_RefusesInvalidDurations(t *testing.T) {
	f := serve(t)
	f.post(202, newEvent(1))
	for _, wait := range []string{"0", "0s", "1", "60", "1m", "20s", "1500ms", "0.5s"} {
		f.do("GET", "/v1/peek?wait="+wait, "").wants(200)
	}
	for _, wait := range []string{"", "-1", "-1s", "61", "61s", "1h", "20 s", "soon", "1e3", "65537", "99999999999999999999"} {
		t.Run(wait, func(t *testing.T) {
			p := f.do("GET", "/v1/peek?wait="+url.QueryEscape(wait), "").problem(400, "invalid")
			require.Contains(t, p.Detail, "from 0 to 1m0s")
		})
	}
	require.Contains(t, f.do("GET", "/v1/peek?wait=1&wait=2", "").problem(400, "invalid").Detail, "2 times")
	require.Contains(t, f.do("DELETE", "/v1/dequeue/"+id(1)+"?wait=1", "").problem(400, "invalid").Detail, `"wait"`)
}

func TestWait_MadeUpActorsLeaveRoomForActorsWithData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := serveBubble(t, newFixture(t, func(_ *api.Options, o *hub.Options) { o.Listeners = 20 }))
		require.Equal(t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		resp := b.exchange(b.dial(), "DELETE /v1/dequeue/"+b.peekID()+" HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: "+actor+"\r\n\r\n")
		require.Equal(t, 200, resp.StatusCode)

		start := time.Now()
		var madeUp []<-chan *http.Response
		for i := range 3 {
			madeUp = append(madeUp, b.sendWaiting(fmt.Sprintf("GET /v1/peek?wait=20s HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: made-up-%d\r\n\r\n", i)))
		}
		b.after(start, 0, 429, madeUp[2])
		known := b.sendWaiting(waitRequest)
		b.after(start, 20*time.Second, 204, known)
		b.after(start, 20*time.Second, 204, madeUp[0])
		b.after(start, 20*time.Second, 204, madeUp[1])
	})
}

// peekID returns the id of the bundle that a Peek of the actor returns.
func (b *bubble) peekID() string {
	b.t.Helper()
	resp := b.exchange(b.dial(), peekRequest)
	require.Equal(b.t, 200, resp.StatusCode)
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Header.Get("MessageId")
}

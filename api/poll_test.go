package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// countPeeks returns a counter of the Peeks that reach the store.
func (f *hubFixture) countPeeks() *int {
	n := new(int)
	f.store.next = func(context.Context) error { *n++; return nil }
	return n
}

func TestPoll_PeeksOnceIfNoEventArrives(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		peeks := b.f.countPeeks()
		require.Equal(b.t, 204, (<-b.sendWaiting(waitRequest)).StatusCode)
		require.Equal(b.t, 2, *peeks, "one, and one after the first look at the watermark")
	})
}

func TestPoll_KeepsItsConnectionForTheNextRequests(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		conn := b.dial()
		reader := bufio.NewReader(conn)
		for range 3 {
			start := time.Now()
			_, err := io.WriteString(conn, strings.Replace(waitRequest, "Host:", "X-Request-Id: mine\r\nHost:", 1))
			require.NoError(b.t, err)
			resp, err := http.ReadResponse(reader, nil)
			require.NoError(b.t, err)
			require.Equal(b.t, 204, resp.StatusCode)
			require.Equal(b.t, "mine", resp.Header.Get("X-Request-Id"))
			require.Equal(b.t, 20*time.Second, time.Since(start))
		}
		require.Equal(b.t, 3, b.f.logs.countLines(`"request_id":"mine","method":"GET","route":"/v1/peek","status":"204","duration_ms":20000`))
		_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
		require.NoError(b.t, err)
		resp, err := http.ReadResponse(reader, nil)
		require.NoError(b.t, err)
		require.Equal(b.t, 200, resp.StatusCode)
	})
}

// A client pipelines requests: it sends the next request before it has received the response. The
// server reads both.
func TestPoll_LeavesPipelinedRequestsToTheServer(t *testing.T) {
	for name, pause := range map[string]time.Duration{"sent with it": 0, "sent while it waits": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bubble) {
				conn, start := b.dial(), time.Now()
				next := "GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n"
				go func() {
					if pause == 0 {
						_, _ = io.WriteString(conn, waitRequest+next)
						return
					}
					_, _ = io.WriteString(conn, waitRequest)
					<-time.After(pause)
					_, _ = io.WriteString(conn, next)
				}()
				<-time.After(3 * time.Second)
				require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
				reader := bufio.NewReader(conn)
				resp, err := http.ReadResponse(reader, nil)
				require.NoError(b.t, err)
				require.Equal(b.t, 200, resp.StatusCode)
				require.NotEmpty(b.t, resp.Header.Get("MessageId"))
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(b.t, err)
				require.Equal(b.t, 3*time.Second, time.Since(start))
				resp, err = http.ReadResponse(reader, nil)
				require.NoError(b.t, err)
				text, err := io.ReadAll(resp.Body)
				require.NoError(b.t, err)
				require.JSONEq(b.t, `{"status":"ok"}`, string(text))
			})
		})
	}
}

func TestPoll_OfAClientThatDisconnectsIsLogged(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		peeks := b.f.countPeeks()
		conn := b.dial()
		_, err := io.WriteString(conn, waitRequest)
		require.NoError(b.t, err)
		<-time.After(time.Second)
		require.NoError(b.t, conn.Close())
		synctest.Wait()
		require.Equal(b.t, 1, b.f.logs.countLines(`"method":"GET","route":"/v1/peek","status":"aborted","duration_ms":1000`))
		require.Equal(b.t, 1, *peeks)
	})
}

func TestPoll_WithALongHeadWaitsInItsHandler(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answered := b.sendWaiting(strings.Replace(waitRequest, "Host:", "X-Long: "+strings.Repeat("x", 4000)+"\r\nHost:", 1))
		<-time.After(time.Second)
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, time.Second, 200, answered)
	})
}

// openConns counts the connections of a server through its hooks, as a connection limit does.
type openConns struct {
	mu    sync.Mutex
	open  map[net.Conn]bool
	most  int
	total int // number of new connections; resumed ones are excluded
}

func (o *openConns) attach(srv *http.Server) {
	o.open = make(map[net.Conn]bool)
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		o.mu.Lock()
		defer o.mu.Unlock()
		if r, ok := c.(interface{ Resumes() net.Conn }); ok && o.open[r.Resumes()] {
			delete(o.open, r.Resumes())
		} else {
			o.total++
		}
		o.open[c] = true
		o.most = max(o.most, len(o.open))
		return ctx
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if state == http.StateClosed || state == http.StateHijacked {
			delete(o.open, c)
		}
	}
}

func (o *openConns) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open)
}

func TestPoll_StaysOneConnectionForTheHooks(t *testing.T) {
	const conns = 6
	for name, end := range map[string]func(b *bubble, clients []net.Conn){
		"at the end of the wait": func(b *bubble, _ []net.Conn) { <-time.After(21 * time.Second) },
		"when clients disconnect": func(b *bubble, clients []net.Conn) {
			for _, c := range clients {
				require.NoError(b.t, c.Close())
			}
		},
		"when data comes": func(b *bubble, _ []net.Conn) {
			recipient, err := domain.ParseActorID(actor)
			require.NoError(b.t, err)
			_, err = b.f.hub.Ingest(b.t.Context(), []domain.Event{repositorytest.Event(recipient)})
			require.NoError(b.t, err)
		},
		"when the server drains": func(b *bubble, _ []net.Conn) { b.f.server.SetDraining() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := new(openConns)
				t.Cleanup(func() { require.Zero(t, o.count(), "once the server has ended") }) // cleanups run in reverse order, so the server has already stopped
				b := serveBubble(t, newFixture(t), o.attach)
				clients := make([]net.Conn, conns)
				for i := range clients {
					clients[i] = b.dial()
					go func() { _, _ = io.Copy(io.Discard, clients[i]) }()
					_, err := io.WriteString(clients[i], strings.Replace(waitRequest, "20s", "1s", 1))
					require.NoError(t, err)
				}
				<-time.After(2 * time.Second) // in this time, each connection is resumed once
				for _, c := range clients {
					_, err := io.WriteString(c, waitRequest)
					require.NoError(t, err)
				}
				synctest.Wait()
				require.Equal(t, conns, o.count())
				end(b, clients)
				synctest.Wait()
				require.Equal(t, conns, o.total)
				require.Equal(t, conns, o.most)
			})
		})
	}
}

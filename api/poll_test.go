package api_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// countPeeks counts the Peeks that reach the store.
func (f *fixture) countPeeks() *int {
	n := new(int)
	f.store.next = func(context.Context) error { *n++; return nil }
	return n
}

func TestPoll_PeeksOnceIfNothingComes(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		peeks := b.f.countPeeks()
		require.Equal(b.t, 204, (<-b.waits(waitRequest)).StatusCode)
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
		require.Equal(b.t, 3, b.f.logs.lines(`"request_id":"mine","method":"GET","route":"/v1/peek","status":"204","duration_ms":20000`))
		_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
		require.NoError(b.t, err)
		resp, err := http.ReadResponse(reader, nil)
		require.NoError(b.t, err)
		require.Equal(b.t, 200, resp.StatusCode)
	})
}

// A client may send its next request before it has the answer.
func TestPoll_LeavesRequestsBehindItToTheServer(t *testing.T) {
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

func TestPoll_OfAClientThatGoesAwayIsLogged(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		peeks := b.f.countPeeks()
		conn := b.dial()
		_, err := io.WriteString(conn, waitRequest)
		require.NoError(b.t, err)
		<-time.After(time.Second)
		require.NoError(b.t, conn.Close())
		synctest.Wait()
		require.Equal(b.t, 1, b.f.logs.lines(`"method":"GET","route":"/v1/peek","status":"aborted","duration_ms":1000`))
		require.Equal(b.t, 1, *peeks)
	})
}

func TestPoll_WithALongHeadWaitsInItsHandler(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		start := time.Now()
		answered := b.waits(strings.Replace(waitRequest, "Host:", "X-Long: "+strings.Repeat("x", 4000)+"\r\nHost:", 1))
		<-time.After(time.Second)
		require.Equal(b.t, 202, b.exchange(b.dial(), post(array(newEvent(1)))).StatusCode)
		b.after(start, time.Second, 200, answered)
	})
}

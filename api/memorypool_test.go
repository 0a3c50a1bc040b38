package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// A remoteConn is a connection from an address.
type remoteConn struct {
	net.Conn
	from net.TCPAddr
}

func (c *remoteConn) RemoteAddr() net.Addr { return &c.from }

// dialFrom opens a connection from 192.0.2.host.
func (b *bubble) dialFrom(host byte) net.Conn {
	client, server := net.Pipe()
	b.conns <- &remoteConn{server, net.TCPAddr{IP: net.IPv4(192, 0, 2, host), Port: 4000}}
	b.t.Cleanup(func() { client.Close() })
	return client
}

// upload begins a request whose body has length bytes, sends the first of them, and
// returns where the answer will be.
func (b *bubble) upload(conn net.Conn, length, sent int) <-chan *http.Response {
	answered := make(chan *http.Response, 1)
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			length, ("[" + strings.Repeat(" ", length-2) + "]")[:sent])
	}()
	go func() {
		resp, _ := http.ReadResponse(bufio.NewReader(conn), nil)
		answered <- resp // nil if the connection was closed
	}()
	synctest.Wait()
	return answered
}

// uploading runs test with a server that has room for four bodies of 256 KB, two of
// them from one address.
func uploading(t *testing.T, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			o.Limits.RequestBody, o.Limits.Bodies, o.Limits.BodiesPerAddress = 256<<10, 1<<20, 512<<10
		})))
	})
}

const bigUpload = 256 << 10

func TestUpload_DoesNotWaitForBodiesThatStandStill(t *testing.T) {
	uploading(t, func(b *bubble) {
		var stalled []<-chan *http.Response
		for i := range byte(4) { // which have all the memory between them
			stalled = append(stalled, b.upload(b.dialFrom(i/2), bigUpload, bigUpload-1))
		}
		start := time.Now()
		require.Equal(b.t, 202, (<-b.upload(b.dialFrom(9), bigUpload, bigUpload)).StatusCode)
		require.LessOrEqual(b.t, time.Since(start), 1200*time.Millisecond)
		require.Equal(b.t, 408, (<-stalled[0]).StatusCode, "the one that has stood still the longest")
		for _, answered := range stalled[1:] {
			require.Empty(b.t, answered, "one was enough")
		}
	})
}

func TestUpload_LeavesAShareOfTheMemoryToOtherAddresses(t *testing.T) {
	uploading(t, func(b *bubble) {
		for range 2 {
			b.upload(b.dialFrom(1), bigUpload, bigUpload-1)
		}
		start := time.Now()
		third := b.upload(b.dialFrom(1), bigUpload, bigUpload)
		require.Equal(b.t, 202, (<-b.upload(b.dialFrom(2), bigUpload, bigUpload)).StatusCode)
		require.Zero(b.t, time.Since(start))
		require.Empty(b.t, third, "it waits for its own address")
		require.Equal(b.t, 202, (<-third).StatusCode)
	})
}

func TestUpload_IsRefusedWhenNoMemoryComesFree(t *testing.T) {
	uploading(t, func(b *bubble) {
		for i := range byte(4) {
			conn := b.dialFrom(i / 2)
			b.upload(conn, bigUpload, bigUpload-80<<10)
			go func() { // slow, but never still for long
				for range 40 {
					<-time.After(500 * time.Millisecond)
					_, _ = io.WriteString(conn, strings.Repeat(" ", 2<<10))
				}
			}()
		}
		<-time.After(9 * time.Second) // now they have all the memory
		start := time.Now()
		resp := <-b.upload(b.dialFrom(9), bigUpload, bigUpload)
		require.Equal(b.t, 429, resp.StatusCode)
		require.Equal(b.t, "1", resp.Header.Get("Retry-After"))
		require.True(b.t, resp.Close)
		require.Equal(b.t, 7500*time.Millisecond, time.Since(start))
		<-time.After(time.Minute)
	})
}

func TestUpload_BoundsSmallBodiesThatStandStill(t *testing.T) {
	uploading(t, func(b *bubble) {
		const small, sent = 60_000, 59_999
		var stalled []<-chan *http.Response
		for range 400 {
			stalled = append(stalled, b.upload(b.dialFrom(1), small, sent))
		}
		start := time.Now()
		refused := 0
		for _, answered := range stalled {
			if len(answered) > 0 {
				require.Equal(b.t, 429, (<-answered).StatusCode)
				refused++
			}
		}
		require.GreaterOrEqual(b.t, refused, 200, "2 MB hold 25 of them, and 128 may wait")
		require.Equal(b.t, 202, (<-b.upload(b.dialFrom(2), small, small)).StatusCode)
		require.Zero(b.t, time.Since(start))
		<-time.After(200 * time.Millisecond)
		require.Equal(b.t, 202, (<-b.upload(b.dialFrom(1), small, small)).StatusCode, "from the same address")
		require.Less(b.t, time.Since(start), 7500*time.Millisecond)
	})
}

// largeAnswer is what the bundle of 4,000 events in answering takes at first. Once its
// events are read, it takes a third of that.
const largeAnswer = 128<<10 + 4000*300

// answering runs test with a server that has room bytes of memory for large answers,
// and memory for one answer of an actor. Three actors have a large bundle waiting, one a small one.
func answering(t *testing.T, room int64, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			o.Limits.Answers, o.Limits.AnswersPerActor = room, largeAnswer
		}))
		n := 0
		for _, actor := range []string{"first", "second", "third"} {
			var events []event
			for range 4000 {
				n++
				events = append(events, newEvent(n, "recipient", actor))
			}
			require.Equal(t, 202, b.exchange(b.dial(), post(array(events...))).StatusCode)
		}
		require.Equal(t, 202, b.exchange(b.dial(), post(array(newEvent(n+1, "recipient", "small")))).StatusCode)
		test(b)
	})
}

// readAll demands the whole answer of a Peek, after a time.
func (b *bubble) readAll(actor string, want time.Duration) {
	b.t.Helper()
	start := time.Now()
	resp := b.exchange(b.dial(), peekAs(actor))
	require.Equal(b.t, 200, resp.StatusCode)
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(b.t, err)
	require.InDelta(b.t, want, time.Since(start), float64(100*time.Millisecond))
}

func TestPeek_DoesNotWaitForAnswersThatAreNotRead(t *testing.T) {
	answering(t, largeAnswer, func(b *bubble) {
		require.Equal(b.t, 200, b.exchange(b.dial(), peekAs("first")).StatusCode)
		b.readAll("small", 0)
		b.readAll("second", time.Second)
		b.f.logs.wait(b.t, "too slowly")
	})
}

func TestPeek_LeavesAShareOfTheMemoryToOtherActors(t *testing.T) {
	answering(t, 2*largeAnswer, func(b *bubble) {
		for range 3 {
			conn := b.dial()
			go func() { _, _ = io.WriteString(conn, peekAs("first")) }()
		}
		synctest.Wait()
		b.readAll("second", 0)
	})
}

package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// A remoteConn is a connection that comes from the given address.
type remoteConn struct {
	net.Conn
	from net.TCPAddr
}

func (c *remoteConn) RemoteAddr() net.Addr { return &c.from }

// dialFrom opens a connection from the address 192.0.2.host.
func (b *bubble) dialFrom(host byte) net.Conn {
	client, server := net.Pipe()
	b.conns <- &remoteConn{server, net.TCPAddr{IP: net.IPv4(192, 0, 2, host), Port: 4000}}
	b.t.Cleanup(func() { client.Close() })
	return client
}

// metrics returns the text of /metrics.
func (b *bubble) metrics() string {
	b.t.Helper()
	text, err := io.ReadAll(b.exchange(b.dial(), "GET /metrics HTTP/1.1\r\nHost: hub\r\n\r\n").Body)
	require.NoError(b.t, err)
	return string(text)
}

// upload sends the header of a request with a body of length bytes and the first sent bytes of the
// body. It returns a channel for the response.
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

// inUploadBubble runs test in fake time with a server. The server has memory for four bodies of 256
// KB, two of them from one address.
func inUploadBubble(t *testing.T, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			o.Limits.RequestBody, o.Limits.Bodies, o.Limits.BodiesPerAddress = 256<<10, 1<<20, 512<<10
		})))
	})
}

const bigUpload = 256 << 10

func TestUpload_DoesNotWaitForStalledBodies(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		var stalled []<-chan *http.Response
		for i := range byte(4) { // these four bodies use all memory
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
	inUploadBubble(t, func(b *bubble) {
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

func TestUpload_IsRefusedWhenNoMemoryBecomesFree(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		for i := range byte(4) {
			conn := b.dialFrom(i)
			b.upload(conn, bigUpload, bigUpload-80<<10)
			go func() { // this client is slow, but never pauses for long
				for range 40 {
					<-time.After(500 * time.Millisecond)
					_, _ = io.WriteString(conn, strings.Repeat(" ", 2<<10))
				}
			}()
		}
		<-time.After(9 * time.Second) // time until these bodies use all memory
		start := time.Now()
		resp := <-b.upload(b.dialFrom(9), bigUpload, bigUpload)
		require.Equal(b.t, 429, resp.StatusCode)
		require.Equal(b.t, "1", resp.Header.Get("Retry-After"))
		require.True(b.t, resp.Close)
		require.Equal(b.t, 7500*time.Millisecond, time.Since(start))
		<-time.After(time.Minute)
	})
}

func TestUpload_ReplacesTransfersOfAddressesThatUseMostMemory(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		for i := range byte(4) {
			conn := b.dialFrom(i / 2)
			b.upload(conn, bigUpload, bigUpload-80<<10)
			go func() { // this client sends at the minimum rate
				for range 40 {
					<-time.After(500 * time.Millisecond)
					_, _ = io.WriteString(conn, strings.Repeat(" ", 2<<10))
				}
			}()
		}
		start := time.Now()
		require.Equal(b.t, 202, (<-b.upload(b.dialFrom(9), bigUpload, bigUpload)).StatusCode)
		require.Less(b.t, time.Since(start), 4*time.Second)
		<-time.After(time.Minute)
	})
}

// sendByteByByte runs n clients at 192.0.2.host until stop is called. Each sends a byte of a body
// every 0.9 s, and reconnects when it is disconnected.
func (b *bubble) sendByteByByte(host byte, n int) (stop func()) {
	stopped := make(chan struct{})
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
					b.dripOnce(b.dialFrom(host), stopped)
				}
			}
		})
	}
	return func() { close(stopped); clients.Wait() }
}

func (b *bubble) dripOnce(conn net.Conn, stopped <-chan struct{}) {
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	_, err := fmt.Fprintf(conn, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n[%s",
		bigUpload, strings.Repeat(" ", 128<<10))
	for err == nil {
		select {
		case <-stopped:
			return
		case <-time.After(900 * time.Millisecond):
			_, err = io.WriteString(conn, " ")
		}
	}
	<-time.After(10 * time.Millisecond)
}

func TestUpload_IsServedWhileTwoAddressesSendSlowly(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		defer b.sendByteByByte(1, 140)()
		defer b.sendByteByByte(2, 140)()
		<-time.After(5 * time.Second)
		start := time.Now()
		for range 20 {
			require.Equal(b.t, 202, (<-b.upload(b.dialFrom(3), bigUpload, bigUpload)).StatusCode)
		}
		require.Less(b.t, time.Since(start), 20*time.Second)
	})
}

// uploadSteadily sends a body in 16 pieces, one every 0.1 s. It returns a channel for the status of
// the response.
func (b *bubble) uploadSteadily(conn net.Conn, header string, piece func(string) string) <-chan int {
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n%s\r\n\r\n", header)
		for i := range 16 {
			text := []byte(strings.Repeat(" ", bigUpload/16))
			switch i {
			case 0:
				text[0] = '['
			case 15:
				text[0] = ']'
			}
			_, _ = io.WriteString(conn, piece(string(text)))
			<-time.After(100 * time.Millisecond)
		}
		_, _ = io.WriteString(conn, piece(""))
	}()
	status := make(chan int, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if assert.NoError(b.t, err) {
			status <- resp.StatusCode
		}
		_, _ = io.Copy(io.Discard, conn)
	}()
	synctest.Wait()
	return status
}

func TestUpload_OfOneAddressIsServedInTurn(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		var all []<-chan int
		for range 3 { // the share of the address allows two bodies
			all = append(all, b.uploadSteadily(b.dialFrom(1), fmt.Sprintf("Content-Length: %d", bigUpload), func(s string) string { return s }))
		}
		start := time.Now()
		for _, status := range all {
			require.Equal(b.t, 202, <-status)
		}
		require.Less(b.t, time.Since(start), 5*time.Second)
	})
}

func TestUpload_WithoutALengthIsRefusedWhenAllUploadsOfItsAddressWait(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		var all []<-chan int
		for range 3 {
			all = append(all, b.uploadSteadily(b.dialFrom(1), "Transfer-Encoding: chunked", chunk))
		}
		start := time.Now()
		require.ElementsMatch(b.t, []int{202, 202, 429}, []int{<-all[0], <-all[1], <-all[2]})
		require.Less(b.t, time.Since(start), 4*time.Second)
		<-time.After(time.Second)
	})
}

func TestUpload_FitsLimitsThatAreNoMultipleOfAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100_001
		b := serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			o.Limits.RequestBody, o.Limits.Bodies, o.Limits.BodiesPerAddress = size, size, size
		}))
		require.Equal(t, 202, (<-b.upload(b.dialFrom(1), size, size)).StatusCode)
	})
}

// A lateConn delays the result of a Read.
type lateConn struct {
	net.Conn
	delay atomic.Int64 // delay of the next Read
}

func (c *lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	<-time.After(time.Duration(c.delay.Swap(0)))
	return n, err
}

func TestUpload_IsStoredIfItIsCutOffAtItsEnd(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
		client, server := net.Pipe()
		defer client.Close()
		late := &lateConn{Conn: &remoteConn{server, net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4000}}}
		conn := &watchedConn{Conn: late}
		b.conns <- conn
		b.f.store.save = func(context.Context, domain.ActorID) error {
			if d := conn.deadline.Load().(time.Time); !d.IsZero() {
				b.t.Errorf("the connection is read until %v after the body", d)
			}
			return nil
		}
		body := array(newEvent(1))
		body = strings.Repeat(" ", bigUpload-len(body)) + body
		resp := make(chan *http.Response, 1)
		go func() {
			_, _ = fmt.Fprintf(client, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
			_, _ = io.WriteString(client, body[:len(body)-1])
			<-time.After(time.Second)
			late.delay.Store(int64(3 * time.Second))
			_, _ = io.WriteString(client, body[len(body)-1:])
			r, _ := http.ReadResponse(bufio.NewReader(client), nil)
			resp <- r
		}()
		<-time.After(2 * time.Second)
		for i := range byte(3) {
			b.upload(b.dialFrom(1+i/2), bigUpload, bigUpload-1)
		}
		second := b.upload(b.dialFrom(9), bigUpload, bigUpload)
		got := <-resp
		require.NotNil(b.t, got)
		require.Equal(b.t, 202, got.StatusCode)
		require.Equal(b.t, 202, (<-second).StatusCode)
		require.Regexp(b.t, `messagehub_http_stalled_clients_total{memory="requests"} 1`, b.metrics())
	})
}

func TestMemoryPool_CutsNoMoreThanItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cuts := 0
		pool := api.NewMemoryPool(100, 50, func() { cuts++ })
		for i := range 4 {
			hold := pool.Open(strconv.Itoa(i / 2))
			require.NoError(t, hold.Acquire(t.Context(), 25))
			hold.BeginTransfer()
		}
		<-time.After(2 * time.Second)
		require.Error(t, pool.Open("other").Acquire(t.Context(), 25), "none of them ends")
		require.Equal(t, 1, cuts)
	})
}

func TestUpload_LimitsStalledSmallBodies(t *testing.T) {
	inUploadBubble(t, func(b *bubble) {
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

// largeAnswer is the memory that a Peek of a bundle with 4,000 events takes at first, in bytes.
// After the events were read, it takes a third of that.
const largeAnswer = 128<<10 + 4000*300

// inDownloadBubble runs test in fake time with a server. The server has room bytes of memory for
// large responses, and an actor may use the memory of one response. Three actors have a large
// waiting bundle, and one actor has a small one.
func inDownloadBubble(t *testing.T, room int64, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := serveBubble(t, newFixture(t, func(o *api.Options, _ *hub.Options) {
			o.Limits.Answers, o.Limits.AnswersPerActor = room, largeAnswer
		}))
		n := 0
		for _, actor := range []string{"first", "second", "third"} {
			var events []testEvent
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

// readAll reads the whole response to a Peek, and requires that this takes the time want.
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
	inDownloadBubble(t, largeAnswer, func(b *bubble) {
		require.Equal(b.t, 200, b.exchange(b.dial(), peekAs("first")).StatusCode)
		b.readAll("small", 0)
		b.readAll("second", 4*time.Second) // at 4 KB/s, reading one writeStep takes this time
		b.f.logs.wait(b.t, "too slowly")
	})
}

func TestPeek_LeavesAShareOfTheMemoryToOtherActors(t *testing.T) {
	inDownloadBubble(t, 2*largeAnswer, func(b *bubble) {
		for range 3 {
			conn := b.dial()
			go func() { _, _ = io.WriteString(conn, peekAs("first")) }()
		}
		synctest.Wait()
		b.readAll("second", 0)
	})
}

func TestPeek_KeepsSteadyReadersOnSlowConnections(t *testing.T) {
	inDownloadBubble(t, largeAnswer+600<<10, func(b *bubble) {
		thin := b.exchange(&slowConn{Conn: b.dial(), rate: 40 << 10}, peekAs("first"))
		require.Equal(b.t, 200, thin.StatusCode)
		whole := make(chan error)
		go func() { _, err := io.Copy(io.Discard, thin.Body); whole <- err }()
		<-time.After(3 * time.Second)
		require.Equal(b.t, 200, b.exchange(b.dial(), peekAs("second")).StatusCode, "its body is not read")
		b.readAll("third", 4*time.Second)
		require.NoError(b.t, <-whole)
	})
}

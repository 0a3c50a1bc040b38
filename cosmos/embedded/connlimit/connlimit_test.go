package connlimit_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

// A pipeServer is an http.Server that listens on in-memory pipes, so that tests can use synthetic time.
type pipeServer struct {
	t       *testing.T
	limiter *connlimit.Limiter
	conns   chan net.Conn
	release chan struct{} // closed at the end of the test, so that handlers of /hang return
	parked  chan net.Conn // connections that requests for /park have hijacked
}

// The status codes with which a pipeServer responds.
const (
	served = http.StatusNoContent
	over   = http.StatusTooManyRequests
	closed = 0
)

func inBubble(t *testing.T, opts connlimit.Options, test func(s *pipeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &pipeServer{t: t, limiter: connlimit.New(opts), conns: make(chan net.Conn), release: make(chan struct{}), parked: make(chan net.Conn, 1)}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if connlimit.OverLimit(r.Context()) {
				w.Header().Set("Connection", "close")
				w.WriteHeader(over)
				return
			}
			switch r.URL.Path {
			case "/hang":
				<-s.release
			case "/park":
				conn, _, err := http.NewResponseController(w).Hijack()
				require.NoError(s.t, err)
				s.parked <- conn
				return
			}
			w.WriteHeader(served)
		})}
		s.limiter.Attach(server)
		state := server.ConnState
		server.ConnState = func(c net.Conn, to http.ConnState) {
			if to != http.StateHijacked {
				state(c, to)
			}
		}
		stopped := make(chan error)
		go func() { stopped <- server.Serve(s) }()
		test(s)
		close(s.release)
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-stopped, http.ErrServerClosed)
		<-time.After(time.Second) // net/http needs some time to close the last connection
		require.Zero(t, s.limiter.Stats().Open)
	})
}

// Accept, Close and Addr make a pipeServer a net.Listener.
func (s *pipeServer) Accept() (net.Conn, error) {
	if c, ok := <-s.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (s *pipeServer) Close() error   { close(s.conns); return nil }
func (s *pipeServer) Addr() net.Addr { return &net.TCPAddr{} }

type remoteConn struct {
	net.Conn
	from net.TCPAddr
}

func (c *remoteConn) RemoteAddr() net.Addr { return &c.from }

// dialFrom opens a connection whose client address is ip.
func (s *pipeServer) dialFrom(ip net.IP) net.Conn {
	client, server := net.Pipe()
	s.conns <- &remoteConn{server, net.TCPAddr{IP: ip, Port: 4000}}
	s.t.Cleanup(func() { client.Close() })
	synctest.Wait()
	return client
}

// sendRequest sends a request and returns the status. It returns closed if the server has closed the connection.
func (s *pipeServer) sendRequest(c net.Conn) int {
	s.t.Helper()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return closed
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return closed
	}
	synctest.Wait()
	return resp.StatusCode
}

// A resumedConn is a parked connection whose next request has already been read into text.
type resumedConn struct {
	net.Conn
	text io.Reader
}

func (c *resumedConn) Read(p []byte) (int, error) { return c.text.Read(p) }
func (c *resumedConn) Resumes() net.Conn          { return c.Conn }

// parkConn sends a request that hijacks the connection, and returns the server's end.
func (s *pipeServer) parkConn(c net.Conn) net.Conn {
	_, err := io.WriteString(c, "GET /park HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(s.t, err)
	return <-s.parked
}

// resumeParked makes the server serve a parked connection again. It returns the status of the next response.
func (s *pipeServer) resumeParked(client, parked net.Conn) int {
	s.conns <- &resumedConn{parked, io.MultiReader(strings.NewReader("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), parked)}
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	require.NoError(s.t, err)
	synctest.Wait()
	return resp.StatusCode
}

// sendHanging sends a request whose handler blocks until the end of the test.
func (s *pipeServer) sendHanging(c net.Conn) {
	_, err := io.WriteString(c, "GET /hang HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(s.t, err)
	synctest.Wait()
}

func testAddr(n byte) net.IP { return net.IPv4(192, 0, 2, n) }

func TestLimiter_ClosesTheConnectionIdleTheLongest(t *testing.T) {
	inBubble(t, connlimit.Options{Limit: 3}, func(s *pipeServer) {
		first, second, third := s.dialFrom(testAddr(1)), s.dialFrom(testAddr(2)), s.dialFrom(testAddr(3))
		for _, c := range []net.Conn{second, first, third, second} {
			<-time.After(time.Second)
			require.Equal(s.t, served, s.sendRequest(c))
		}
		require.Equal(s.t, served, s.sendRequest(s.dialFrom(testAddr(4))))
		require.Equal(s.t, closed, s.sendRequest(first))
		require.Equal(s.t, served, s.sendRequest(second))
		require.Equal(s.t, served, s.sendRequest(third))
	})
}

func TestLimiter_ClosesConnectionsWithoutARequestInTime(t *testing.T) {
	inBubble(t, connlimit.Options{Limit: 2}, func(s *pipeServer) {
		silent := s.dialFrom(testAddr(1))
		s.sendHanging(s.dialFrom(testAddr(1)))
		require.Equal(s.t, over, s.sendRequest(s.dialFrom(testAddr(2))))
		<-time.After(time.Second / 2)
		require.Equal(s.t, served, s.sendRequest(s.dialFrom(testAddr(2))))
		require.Equal(s.t, closed, s.sendRequest(silent))
	})
}

func TestLimiter_ServesConnectionsOverTheLimitOneAfterTheOther(t *testing.T) {
	inBubble(t, connlimit.Options{Limit: 2, Reserve: 3}, func(s *pipeServer) {
		s.sendHanging(s.dialFrom(testAddr(1)))
		s.sendHanging(s.dialFrom(testAddr(1)))
		var silent []net.Conn
		for range 10 {
			silent = append(silent, s.dialFrom(testAddr(1)))
		}
		require.Equal(s.t, 5, s.limiter.Stats().Open)
		require.Equal(s.t, over, s.sendRequest(s.dialFrom(testAddr(2))))
		require.Equal(s.t, closed, s.sendRequest(silent[0]))
		require.Equal(s.t, over, s.sendRequest(silent[9]))
	})
}

func TestLimiter_BoundsTheConnectionsOfAnAddress(t *testing.T) {
	inBubble(t, connlimit.Options{Limit: 10, PerAddress: 2}, func(s *pipeServer) {
		for range 2 {
			s.sendHanging(s.dialFrom(testAddr(1)))
		}
		require.Equal(s.t, over, s.sendRequest(s.dialFrom(testAddr(1))))
		require.Equal(s.t, served, s.sendRequest(s.dialFrom(testAddr(2))))
		local := net.IPv4(127, 0, 0, 1) // all clients of a local proxy have this address
		for range 3 {
			s.sendHanging(s.dialFrom(local))
		}
		require.Equal(s.t, served, s.sendRequest(s.dialFrom(local)))
	})
}

func TestLimiter_KeepsTheEntryOfAResumedConnection(t *testing.T) {
	inBubble(t, connlimit.Options{Limit: 2}, func(s *pipeServer) {
		client := s.dialFrom(testAddr(1))
		s.sendHanging(s.dialFrom(testAddr(2)))
		for range 3 {
			parked := s.parkConn(client)
			require.Equal(s.t, over, s.sendRequest(s.dialFrom(testAddr(3))))
			require.Equal(s.t, served, s.resumeParked(client, parked))
		}
		require.Equal(s.t, 2, s.limiter.Stats().Open)
	})
}

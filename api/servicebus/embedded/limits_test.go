package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// An anonymousPeer is an AMQP client without a token.
type anonymousPeer struct {
	net.Conn
	t  testing.TB
	in *bufio.Reader
}

// newAnonymousPeer performs the AMQP handshake on nc and begins a session.
func newAnonymousPeer(t testing.TB, nc net.Conn) *anonymousPeer {
	t.Helper()
	s := &anonymousPeer{Conn: nc, t: t, in: bufio.NewReader(nc)}
	_, err := nc.Write(amqp.HeaderAMQP[:])
	require.NoError(t, err)
	_, err = io.ReadFull(s.in, make([]byte, 8))
	require.NoError(t, err)
	s.sendFrame(&amqp.Open{ContainerID: "stranger", MaxFrameSize: 64 << 10})
	s.nextFrame()
	s.sendFrame(&amqp.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 4095})
	s.nextFrame()
	return s
}

func (s *anonymousPeer) sendFrame(p amqp.Performative) {
	s.t.Helper()
	_, err := s.Write(amqp.AppendFrame(nil, amqp.FrameAMQP, 0, p, nil))
	require.NoError(s.t, err)
}

func (s *anonymousPeer) nextFrame() amqp.Performative {
	s.t.Helper()
	frame, err := amqp.ReadFrame(s.in, 1<<20)
	require.NoError(s.t, err)
	p, _, err := amqp.ReadPerformative(frame.Body)
	require.NoError(s.t, err)
	return p
}

// attachRefused attaches a link, and fails the test unless the server refuses it.
func (s *anonymousPeer) attachRefused(handle uint32, address string) {
	s.t.Helper()
	s.sendFrame(&amqp.Attach{Name: "s", Handle: handle, Role: amqp.RoleSender, Target: &amqp.Target{Address: address}})
	s.nextFrame()
	d, ok := s.nextFrame().(*amqp.Detach)
	require.True(s.t, ok)
	require.NotNil(s.t, d.Error)
}

func dialTCP(t testing.TB, address string) net.Conn {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

func TestServe_EndsAnonymousPeersThatNeverDetach(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	address, _ := serveTLS(t, n)
	before := heapInUse()
	for range 10 {
		s := newAnonymousPeer(t, dialTCP(t, address))
		for handle := range uint32(17) {
			s.attachRefused(handle, strings.Repeat("a", 15<<10))
		}
		closed, ok := s.nextFrame().(*amqp.Close)
		require.True(t, ok)
		require.Equal(t, amqp.ResourceLimitExceeded, closed.Error.Condition)
		require.NoError(t, s.Close())
	}
	require.Less(t, heapInUse()-before, int64(1<<20), "170 frames of 15 KB are 2.5 MB")
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestServe_KeepsAQuarterOfTheConnectionsForTheProcess(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q"), MaxConnections: 8})
	address, _ := serveTLS(t, n)
	for range 8 {
		newAnonymousPeer(t, dialTCP(t, address))
	}
	for range 2 {
		require.NoError(t, trySend(t, newClient(t, n), "q"))
	}
	_, err := n.Dial(t.Context())
	require.ErrorContains(t, err, "too many connections: 8")
}

func TestServe_ReplacesTheOldestConnectionWithoutAToken(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q"), MaxConnections: 4})
	address, _ := serveTLS(t, n)
	honest := func() *azservicebus.Client {
		c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(address), nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
	first := honest()
	require.NoError(t, trySend(t, first, "q"))
	var strangers []*anonymousPeer
	for range 2 {
		strangers = append(strangers, newAnonymousPeer(t, dialTCP(t, address)))
	}
	require.NoError(t, trySend(t, honest(), "q"), "in place of the first stranger")
	_, err := strangers[0].in.ReadByte()
	require.Error(t, err)
	require.NoError(t, trySend(t, honest(), "q"), "in place of the second")
	refused := dialTCP(t, address)
	_, err = refused.Read(make([]byte, 1))
	require.Error(t, err, "all have a token")
	require.EqualValues(t, 2, n.Stats().Replaced)
	require.EqualValues(t, 1, n.Stats().Refused)
	require.NoError(t, trySend(t, first, "q"))
}

func TestServe_EndsSilentConnections(t *testing.T) {
	for name, said := range map[string]string{
		"at all": "", "but the header": "AMQP\x00\x01\x00\x00", "but the first byte of TLS": "\x16", "but half a request": "GET / HTTP/1.1\r\n",
		"over a WebSocket": "GET /$servicebus/websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: AMQPWSB10\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, err := embedded.Open(embedded.Options{})
				require.NoError(t, err)
				l := newFailingListener()
				ctx, cancel := context.WithCancel(context.Background())
				served := make(chan error, 1)
				go func() { served <- n.Serve(ctx, l, embedded.ServeOptions{}) }()
				client, server := net.Pipe()
				l.conns <- server
				began := time.Now()
				if said != "" {
					_, err = io.WriteString(client, said)
					require.NoError(t, err)
				}
				_, _ = io.Copy(io.Discard, client)
				require.LessOrEqual(t, time.Since(began), 12*time.Second)
				require.NoError(t, client.Close())
				cancel()
				require.NoError(t, <-served)
				require.NoError(t, n.Close())
			})
		})
	}
}

func TestServe_KeepsAuthorizedConnectionsThatAreIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := embedded.Open(embedded.Options{Entities: queues("q")})
		require.NoError(t, err)
		c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), withoutRetries(n))
		require.NoError(t, err)
		s, err := c.NewSender("q", nil)
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{}, nil))
			<-time.After(10 * time.Minute)
		}
		require.EqualValues(t, 1, n.Stats().Connections)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, n.Close())
	})
}

func TestServe_ClosesHTTPConnectionsWithoutAToken(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q")})
	address, _ := serveTLS(t, n)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	key := embedded.Key{Name: embedded.WellKnownKeyName, Secret: embedded.WellKnownKey}
	for token, closes := range map[string]bool{
		"": true, "SharedAccessSignature x": true, key.Sign("http://"+address+"/q", time.Now().Add(time.Hour)): false,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/q", nil)
		require.NoError(t, err)
		if token != "" {
			r.Header.Set("Authorization", token)
		}
		answer, err := transport.RoundTrip(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, closes, answer.Close, "%q: %s", token, answer.Status)
	}
}

func TestServe_RefusesLargeHeadersAndBodies(t *testing.T) {
	n := openNamespace(t, embedded.Options{Anonymous: true})
	address, _ := serveTLS(t, n)
	for status, text := range map[string]string{
		"431": "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 80_000) + "\r\n\r\n",
		"413": fmt.Sprintf("PUT /q HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", 2<<20, bytes.Repeat([]byte("x"), 1<<20+1)),
	} {
		nc := dialTCP(t, address)
		_, err := io.WriteString(nc, text)
		require.NoError(t, err)
		line, err := bufio.NewReader(nc).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, status)
	}
}

func TestServe_CountsAWebSocketOnce(t *testing.T) {
	n := openNamespace(t, embedded.Options{Entities: queues("q"), MaxConnections: 1})
	address, _ := serveTLS(t, n)
	c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(address), clientDialing(func(ctx context.Context) (net.Conn, error) {
		ws, answer, err := websocket.Dial(ctx, "ws://"+address+"/$servicebus/websocket", &websocket.DialOptions{Subprotocols: []string{"AMQPWSB10"}})
		if err != nil {
			return nil, err
		}
		if answer.Body != nil {
			_ = answer.Body.Close()
		}
		return websocket.NetConn(context.Background(), ws, websocket.MessageBinary), nil
	}))
	require.NoError(t, err)
	require.NoError(t, trySend(t, c, "q"))
	nc := dialTCP(t, address)
	_, err = nc.Read(make([]byte, 1))
	require.Error(t, err, "the WebSocket has presented a token, and is not replaced")
	require.NoError(t, trySend(t, c, "q"))
	require.NoError(t, c.Close(t.Context()))
}

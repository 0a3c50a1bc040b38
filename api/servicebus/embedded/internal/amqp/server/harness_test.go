package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
)

// testApplication authorizes every connection and passes links to a function.
type testApplication func(*server.Link)

func (a testApplication) Connected(c *server.Conn) server.Peer {
	c.Authorize()
	return a
}
func (a testApplication) Attach(l *server.Link) { a(l) }
func (a testApplication) Disconnected()         {}

// testReceiver passes deliveries to a function.
type testReceiver func(*server.Delivery)

func (r testReceiver) Delivered(d *server.Delivery) { r(d) }

// acceptAll accepts every message immediately.
func acceptAll(d *server.Delivery) { d.Settle(amqp.Accepted{}) }

// testSender sends messages while the link has room, and records their outcomes.
type testSender struct {
	mu       sync.Mutex
	link     *server.Link
	payload  []byte
	settled  bool
	left     int
	sent     int
	disposed []any
}

func (s *testSender) Ready(drain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.left > 0 && s.link.Room() > 0 {
		s.left--
		s.sent++
		s.link.Transfer(server.Outgoing{Tag: []byte{byte(s.sent)}, Settled: s.settled, Payload: s.payload})
	}
	if drain {
		s.link.Drained()
	}
}

func (s *testSender) Disposed(m *server.Sent, state any, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disposed = append(s.disposed, state)
	if !settled {
		m.Settle(state)
	}
}

// A peer is a test client that sends and receives single frames.
type peer struct {
	net.Conn
	t     testing.TB
	in    *bufio.Reader
	ended chan error // receives the error that Serve returns
}

func serveTest(t testing.TB, ctx context.Context, app testApplication, o server.Options) *peer {
	t.Helper()
	return serveAny(t, ctx, app, o)
}

// serveAny serves a connection with the given application.
func serveAny(t testing.TB, ctx context.Context, app server.Application, o server.Options) *peer {
	t.Helper()
	mine, theirs := net.Pipe()
	p := &peer{Conn: mine, t: t, in: bufio.NewReader(mine), ended: make(chan error, 1)}
	go func() { p.ended <- server.Serve(ctx, theirs, app, o) }()
	return p
}

// closePeer closes the connection and waits until Serve has returned.
func (p *peer) closePeer() {
	_ = p.Close()
	<-p.ended
}

func (p *peer) writeBytes(b []byte) {
	p.t.Helper()
	_, err := p.Write(b)
	require.NoError(p.t, err)
}

// openPeer performs the AMQP handshake without SASL.
func (p *peer) openPeer(o amqp.Open) {
	p.t.Helper()
	p.writeBytes(amqp.HeaderAMQP[:])
	require.Equal(p.t, amqp.HeaderAMQP, p.readHeader())
	o.ContainerID = "test"
	if o.MaxFrameSize == 0 {
		o.MaxFrameSize = 65536
	}
	p.sendFrame(0, &o, nil)
	expectFrame[*amqp.Open](p)
}

func (p *peer) readHeader() (h amqp.Header) {
	p.t.Helper()
	_, err := io.ReadFull(p.in, h[:])
	require.NoError(p.t, err)
	return h
}

func (p *peer) sendFrame(channel uint16, performative amqp.Performative, payload []byte) {
	p.t.Helper()
	p.writeBytes(amqp.AppendFrame(nil, amqp.FrameAMQP, channel, performative, payload))
}

// readFrame returns the next frame, skipping empty frames.
func (p *peer) readFrame() (amqp.Performative, []byte) {
	p.t.Helper()
	for {
		frame, err := amqp.ReadFrame(p.in, 1<<20)
		require.NoError(p.t, err)
		if len(frame.Body) > 0 {
			performative, payload, err := amqp.ReadPerformative(frame.Body)
			require.NoError(p.t, err)
			return performative, payload
		}
	}
}

// sentCount returns the number of sent messages.
func (s *testSender) sentCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// expectFrame reads the next frame, which must have type P.
func expectFrame[P amqp.Performative](p *peer) P {
	p.t.Helper()
	performative, _ := p.readFrame()
	got, ok := performative.(P)
	require.True(p.t, ok, "got %s", amqp.Describe(performative))
	return got
}

// expectClose fails the test unless the server closes the connection with the given condition.
func (p *peer) expectClose(condition amqp.Symbol) {
	p.t.Helper()
	c := expectFrame[*amqp.Close](p)
	require.NotNil(p.t, c.Error)
	require.Equal(p.t, condition, c.Error.Condition, c.Error.Description)
	_, err := p.in.ReadByte()
	require.ErrorIs(p.t, err, io.EOF)
	<-p.ended
}

// beginSession begins a session with the given window.
func (p *peer) beginSession(channel uint16, window uint32) {
	p.t.Helper()
	p.sendFrame(channel, &amqp.Begin{IncomingWindow: window, OutgoingWindow: 100, HandleMax: 255}, nil)
	require.Equal(p.t, channel, *expectFrame[*amqp.Begin](p).RemoteChannel)
}

// attachSender attaches a link on which the peer sends.
func (p *peer) attachSender(channel uint16, handle uint32) {
	p.t.Helper()
	zero := uint32(0)
	p.sendFrame(channel, &amqp.Attach{Name: "s", Handle: handle, Role: amqp.RoleSender, Target: &amqp.Target{Address: "a"}, InitialDeliveryCount: &zero}, nil)
}

// attachReceiver attaches a link on which the peer receives.
func (p *peer) attachReceiver(channel uint16, handle uint32) {
	p.t.Helper()
	p.sendFrame(channel, &amqp.Attach{Name: "r", Handle: handle, Role: amqp.RoleReceiver, Source: &amqp.Source{Address: "a"}}, nil)
}

// giveCredit grants credit for n messages. seen is the number of messages that the peer has received.
func (p *peer) giveCredit(channel uint16, handle, seen, n uint32, drain bool) {
	p.t.Helper()
	next := uint32(0)
	p.sendFrame(channel, &amqp.Flow{NextIncomingID: &next, IncomingWindow: 1000, OutgoingWindow: 100, Handle: &handle, DeliveryCount: &seen, LinkCredit: &n, Drain: drain}, nil)
}

func newTransfer(handle, id uint32, more bool) *amqp.Transfer {
	return &amqp.Transfer{Handle: handle, DeliveryID: &id, DeliveryTag: []byte{byte(id)}, More: more}
}

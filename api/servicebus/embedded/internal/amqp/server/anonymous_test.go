package server_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
)

// An anonymousApplication refuses every link. A link with the address "token" authorizes the connection first.
type anonymousApplication struct{ conn *server.Conn }

func (a *anonymousApplication) Connected(c *server.Conn) server.Peer {
	a.conn = c
	return a
}

func (a *anonymousApplication) Attach(l *server.Link) {
	if target, ok := l.Wants.Target.(*amqp.Target); ok && target.Address == "token" {
		a.conn.Authorize()
	}
	l.Refuse(amqp.Errorf(amqp.UnauthorizedAccess, "no token"))
}
func (a *anonymousApplication) Disconnected() {}

// attachRefused attaches a link that the server must refuse, and returns the error condition.
func (p *peer) attachRefused(handle uint32, address string) amqp.Symbol {
	p.t.Helper()
	p.sendFrame(0, &amqp.Attach{Name: "s", Handle: handle, Role: amqp.RoleSender, Target: &amqp.Target{Address: address}}, nil)
	expectFrame[*amqp.Attach](p)
	return expectFrame[*amqp.Detach](p).Error.Condition
}

func (p *peer) detachLink(handle uint32) {
	p.t.Helper()
	p.sendFrame(0, &amqp.Detach{Handle: handle, Closed: true}, nil)
}

func TestConn_EndsWithoutAuthorizationInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		totals := server.NewTotals(server.TotalLimits{})
		p := serveAny(t, context.Background(), new(anonymousApplication), server.Options{Totals: totals})
		began := time.Now()
		p.openPeer(amqp.Open{})
		p.beginSession(0, 100)
		p.attachRefused(0, "a")
		closed := expectFrame[*amqp.Close](p)
		require.Equal(t, amqp.UnauthorizedAccess, closed.Error.Condition)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorContains(t, <-p.ended, "no valid token within 10s")
		require.Equal(t, 11*time.Second, time.Since(began), "the peer has a second to answer")
		require.Zero(t, totals.Use())
		require.NoError(t, p.Close())
	})
}

func TestConn_EndsUnauthorizedPeersThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveAny(t, context.Background(), new(anonymousApplication), server.Options{})
		began := time.Now()
		p.openPeer(amqp.Open{})
		p.sendFrame(0, &amqp.Begin{IncomingWindow: 1, OutgoingWindow: 1, HandleMax: 255}, nil)
		require.Error(t, <-p.ended)
		require.LessOrEqual(t, time.Since(began), 12*time.Second)
		require.NoError(t, p.Close())
	})
}

func TestConn_ContinuesAfterAuthorization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authorized := 0
		p := serveAny(t, context.Background(), new(anonymousApplication), server.Options{Authorized: func() { authorized++ }})
		p.openPeer(amqp.Open{})
		p.beginSession(0, 100)
		for range 2 {
			p.attachRefused(0, "token")
			p.detachLink(0)
		}
		require.Equal(t, 1, authorized)
		<-time.After(time.Minute)
		p.attachRefused(0, "a")
		p.closePeer()
	})
}

func TestConn_LimitsAnonymousPeers(t *testing.T) {
	for name, tc := range map[string]struct {
		exceed func(p *peer)
		want   amqp.Symbol
	}{
		"frames": {func(p *peer) {
			p.writeBytes([]byte{0, 1, 0, 1, 2, 0, 0, 0}) // the header announces a frame of 64 KB plus one byte
		}, amqp.FramingError},
		"sessions": {func(p *peer) {
			for channel := range uint16(63) {
				p.beginSession(channel+1, 100)
			}
			p.sendFrame(64, &amqp.Begin{}, nil)
		}, amqp.ResourceLimitExceeded},
		"refused links without a detach": {func(p *peer) {
			for handle := range uint32(17) {
				p.attachRefused(handle, "a")
			}
		}, amqp.ResourceLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			p := serveAny(t, t.Context(), new(anonymousApplication), server.Options{})
			p.openPeer(amqp.Open{})
			p.beginSession(0, 100)
			tc.exceed(p)
			closed := expectFrame[*amqp.Close](p)
			require.Equal(t, tc.want, closed.Error.Condition, closed.Error.Description)
			p.closePeer()
		})
	}
}

func TestConn_LimitsRefusedLinksOfAuthorizedPeers(t *testing.T) {
	p := serveAny(t, t.Context(), new(anonymousApplication), server.Options{MaxDetaching: 100})
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	for handle := range uint32(101) {
		p.attachRefused(handle, "token")
	}
	require.Equal(t, amqp.ResourceLimitExceeded, expectFrame[*amqp.Close](p).Error.Condition)
	p.closePeer()
}

func TestRefuse_StoresOnlyTheHandleUntilTheDetach(t *testing.T) {
	totals := server.NewTotals(server.TotalLimits{})
	p := serveAny(t, t.Context(), new(anonymousApplication), server.Options{Totals: totals})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.attachRefused(1000, "token")
	const count, size = 1000, 12 << 10
	address := strings.Repeat("a", size)
	before := heapInUse()
	for handle := range uint32(count) {
		p.attachRefused(handle, address)
	}
	used := heapInUse() - before
	require.Less(t, used/count, int64(512), "bytes for each refused link")
	require.EqualValues(t, 0, totals.Use().Links)
	require.Less(t, totals.Use().Memory, int64(100_000))

	p.attachSender(0, 7)
	require.Equal(t, amqp.HandleInUse, expectFrame[*amqp.End](p).Error.Condition, "until the peer has detached it")
}

func TestRefuse_FreesTheHandleWithTheDetach(t *testing.T) {
	totals := server.NewTotals(server.TotalLimits{})
	p := serveAny(t, t.Context(), new(anonymousApplication), server.Options{Totals: totals})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	for range 100 { // more links than may wait for a detach
		require.Equal(t, amqp.UnauthorizedAccess, p.attachRefused(0, "a"))
		p.detachLink(0)
	}
}

func TestAttach_RefusesMoreLinksThanAllConnectionsMayHave(t *testing.T) {
	totals := server.NewTotals(server.TotalLimits{Links: 3, Sessions: 2})
	o := server.Options{Totals: totals}
	a := serveTest(t, t.Context(), acceptReceivers(acceptAll), o)
	b := serveTest(t, t.Context(), acceptReceivers(acceptAll), o)
	for i, p := range []*peer{a, b} {
		p.openPeer(amqp.Open{})
		p.beginSession(0, 100)
		for handle := range uint32(2 - i) {
			p.attachSender(0, handle)
			require.NotNil(t, expectFrame[*amqp.Attach](p).Target)
			expectFrame[*amqp.Flow](p)
		}
	}
	require.Equal(t, amqp.ResourceLimitExceeded, b.attachRefused(5, "a"))
	b.detachLink(5)
	require.EqualValues(t, 3, totals.Use().Links)
	a.closePeer()
	require.EqualValues(t, 1, totals.Use().Sessions)
	require.EqualValues(t, 1, totals.Use().Links)
	b.attachSender(0, 5)
	require.NotNil(t, expectFrame[*amqp.Attach](b).Target)
	expectFrame[*amqp.Flow](b)
	b.beginSession(1, 100)
	b.sendFrame(2, &amqp.Begin{}, nil)
	b.expectClose(amqp.ResourceLimitExceeded)
	require.Zero(t, totals.Use())
	require.NoError(t, b.Close())
}

// An anonymousReceiver accepts links and messages but never authorizes the connection, as the namespace does for $cbs.
type anonymousReceiver struct{ testApplication }

func (a anonymousReceiver) Connected(*server.Conn) server.Peer { return a }

func TestConn_AcceptsLargeFramesBeforeAToken(t *testing.T) {
	totals := server.NewTotals(server.TotalLimits{})
	p := serveAny(t, t.Context(), anonymousReceiver{func(l *server.Link) {
		l.Receive(server.Terms{Credit: 10}, testReceiver(acceptAll))
	}}, server.Options{Totals: totals})
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.attachSender(0, 0)
	expectFrame[*amqp.Attach](p)
	expectFrame[*amqp.Flow](p)
	for id := range uint32(3) {
		p.sendFrame(0, newTransfer(0, id, false), make([]byte, 60<<10))
		require.Equal(t, amqp.Accepted{}, expectFrame[*amqp.Disposition](p).State)
	}
	p.closePeer()
	require.Zero(t, totals.Use())
}

func TestConn_CountsALargeFrameBeforeAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 60_000
		totals := server.NewTotals(server.TotalLimits{Memory: 100_000})
		o := server.Options{Totals: totals}
		head := []byte{0, 0, size >> 8, size & 0xff, 2, 0, 0, 0}
		a, b := serveAny(t, context.Background(), new(anonymousApplication), o), serveAny(t, context.Background(), new(anonymousApplication), o)
		a.openPeer(amqp.Open{})
		b.openPeer(amqp.Open{})
		a.writeBytes(head)
		synctest.Wait()
		require.GreaterOrEqual(t, totals.Use().Memory, int64(size))
		b.writeBytes(head)
		require.Equal(t, amqp.ResourceLimitExceeded, expectFrame[*amqp.Close](b).Error.Condition)
		a.closePeer()
		b.closePeer()
		require.Zero(t, totals.Use())
	})
}

func TestConn_BuffersLessWhileMemoryIsScarce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		totals := server.NewTotals(server.TotalLimits{Memory: 100_000})
		source := &testSender{payload: make([]byte, 1000), settled: true, left: 1_000_000}
		o := server.Options{OutBuffer: 64_000, StallTimeout: time.Hour, Totals: totals}
		var peers []*peer
		for range 10 {
			p := serveTest(t, context.Background(), func(l *server.Link) {
				own := &testSender{payload: source.payload, settled: true, left: source.left, link: l}
				l.Send(server.Terms{}, own)
			}, o)
			p.openPeer(amqp.Open{})
			p.beginSession(0, 10_000)
			p.attachReceiver(0, 0)
			expectFrame[*amqp.Attach](p)
			p.giveCredit(0, 0, 0, 1_000_000, false) // the peer grants credit and then reads nothing
			peers = append(peers, p)
			synctest.Wait()
		}
		require.Less(t, totals.Use().Memory, int64(100_000+64_000+10*8_000), "without the limit: 640,000")
		for range 20 { // a peer that reads is still served
			expectFrame[*amqp.Transfer](peers[9])
		}
		for _, p := range peers {
			p.closePeer()
		}
		require.Zero(t, totals.Use())
	})
}

func TestConn_EndsWhenAllBuffersAreExhausted(t *testing.T) {
	totals := server.NewTotals(server.TotalLimits{Memory: 100_000})
	p := serveTest(t, t.Context(), func(l *server.Link) {
		l.Send(server.Terms{}, &hastySender{link: l})
	}, server.Options{OutBuffer: 64_000, Totals: totals})
	p.openPeer(amqp.Open{})
	p.beginSession(0, 1)
	p.attachReceiver(0, 0)
	expectFrame[*amqp.Attach](p)
	handle, credit := uint32(0), uint32(1000)
	p.sendFrame(0, &amqp.Flow{IncomingWindow: 1, Handle: &handle, LinkCredit: &credit}, nil)
	expectFrame[*amqp.Transfer](p) // the remaining transfers wait until the window opens
	require.Equal(t, amqp.ResourceLimitExceeded, expectFrame[*amqp.Close](p).Error.Condition)
	p.closePeer()
	require.Zero(t, totals.Use())
}

// A hastySender ignores buffer limits, as the bus does for messages that a link has already requested.
type hastySender struct{ link *server.Link }

func (s *hastySender) Ready(bool) {
	for s.link.Transfer(server.Outgoing{Settled: true, Payload: make([]byte, 1000)}) {
	}
}
func (s *hastySender) Disposed(*server.Sent, any, bool) {}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

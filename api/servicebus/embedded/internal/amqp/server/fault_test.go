package server_test

import (
	"context"
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
)

// acceptReceivers returns an application that accepts links from sending peers and grants 10 credits.
func acceptReceivers(with testReceiver) testApplication {
	return func(l *server.Link) {
		l.Receive(server.Terms{Credit: 10, MaxMessageSize: 1000}, with)
	}
}

func TestHandshake_NamesTheSupportedProtocol(t *testing.T) {
	p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{})
	p.writeBytes([]byte("GET / HT"))
	require.Equal(t, amqp.HeaderSASL, p.readHeader())
	_, err := p.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, <-p.ended, "not AMQP 1.0")
}

func TestConn_EndsWithAReasonAfterInvalidInput(t *testing.T) {
	frame := func(body ...byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(8+len(body))), append([]byte{2, 0, 0, 0}, body...)...)
	}
	for name, tc := range map[string]struct {
		bytes []byte
		want  amqp.Symbol
	}{
		"a frame of 2 GB":              {[]byte{0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0}, amqp.FramingError},
		"a frame without room":         {[]byte{0, 0, 0, 4, 2, 0, 0, 0}, amqp.FramingError},
		"a frame of SASL":              {[]byte{0, 0, 0, 9, 2, 1, 0, 0, 0x40}, amqp.FramingError},
		"no performative":              {frame(0x40), amqp.DecodeError},
		"half a performative":          {frame(0, 0x53, 0x11, 0xc0, 200), amqp.DecodeError},
		"an unknown performative":      {frame(0, 0x53, 0x77, 0x45), amqp.DecodeError},
		"deep nesting":                 {frame(make([]byte, 60_000)...), amqp.DecodeError},
		"a flow without a session":     {amqp.AppendFrame(nil, 0, 3, &amqp.Flow{}, nil), amqp.NotAllowed},
		"a second open":                {amqp.AppendFrame(nil, 0, 0, &amqp.Open{ContainerID: "x"}, nil), amqp.NotAllowed},
		"a session beyond the largest": {amqp.AppendFrame(nil, 0, 9999, &amqp.Begin{}, nil), amqp.FramingError},
	} {
		t.Run(name, func(t *testing.T) {
			p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{})
			p.openPeer(amqp.Open{})
			p.writeBytes(tc.bytes)
			p.expectClose(tc.want)
		})
	}
}

func TestProtocolError_EndsTheSmallestUnit(t *testing.T) {
	p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.beginSession(1, 100)
	p.attachSender(1, 0)
	expectFrame[*amqp.Attach](p)
	expectFrame[*amqp.Flow](p)

	p.sendFrame(0, newTransfer(5, 0, false), []byte("to nobody"))
	require.Equal(t, amqp.UnattachedHandle, expectFrame[*amqp.End](p).Error.Condition)
	p.sendFrame(0, &amqp.Flow{}, nil) // the server ignores a flow that the peer sent before it received the end of the session
	p.sendFrame(0, &amqp.End{}, nil)

	p.beginSession(0, 100) // the peer can use the channel again
	p.attachSender(0, 0)
	expectFrame[*amqp.Attach](p)
	expectFrame[*amqp.Flow](p)
	p.sendFrame(0, newTransfer(0, 0, false), make([]byte, 1001))
	expectFrame[*amqp.Disposition](p)
	require.Equal(t, amqp.MessageSizeExceeded, expectFrame[*amqp.Detach](p).Error.Condition)
	p.sendFrame(0, newTransfer(0, 1, false), []byte("was on its way"))
	p.sendFrame(0, &amqp.Detach{Handle: 0, Closed: true}, nil)

	p.sendFrame(1, newTransfer(0, 0, false), []byte("still fine")) // the error does not affect the second session
	require.Equal(t, amqp.Accepted{}, expectFrame[*amqp.Disposition](p).State)
}

// Some clients ignore a detach while they wait for the outcome of a message. Therefore the server rejects a message
// over the limit before it detaches the link.
func TestTransfer_OverTheLimitIsRejectedBeforeTheDetach(t *testing.T) {
	for name, size := range map[string][]int{"in one frame": {1001}, "in its second frame": {600, 600}} {
		t.Run(name, func(t *testing.T) {
			p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{})
			defer p.closePeer()
			p.openPeer(amqp.Open{})
			p.beginSession(0, 100)
			p.attachSender(0, 0)
			expectFrame[*amqp.Attach](p)
			expectFrame[*amqp.Flow](p)
			for _, n := range size {
				p.sendFrame(0, newTransfer(0, 7, true), make([]byte, n))
			}
			p.sendFrame(0, newTransfer(0, 7, false), []byte("was on its way"))
			outcome := expectFrame[*amqp.Disposition](p)
			require.Equal(t, amqp.RoleReceiver, outcome.Role)
			require.EqualValues(t, 7, outcome.First)
			require.True(t, outcome.Settled)
			rejected, ok := outcome.State.(amqp.Rejected)
			require.True(t, ok, "got %#v", outcome.State)
			require.Equal(t, amqp.MessageSizeExceeded, rejected.Error.Condition)
			require.Equal(t, amqp.MessageSizeExceeded, expectFrame[*amqp.Detach](p).Error.Condition)
		})
	}
}

func TestTransfer_OverTheLimitHasNoOutcomeIfThePeerSettledIt(t *testing.T) {
	p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.attachSender(0, 0)
	expectFrame[*amqp.Attach](p)
	expectFrame[*amqp.Flow](p)
	settled, transfer := true, newTransfer(0, 0, false)
	transfer.Settled = &settled
	p.sendFrame(0, transfer, make([]byte, 1001))
	require.Equal(t, amqp.MessageSizeExceeded, expectFrame[*amqp.Detach](p).Error.Condition)
}

func TestEnd_OfASessionThatNeverBeganIsIgnored(t *testing.T) {
	p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(1, 100)
	p.attachSender(1, 0)
	expectFrame[*amqp.Attach](p)
	expectFrame[*amqp.Flow](p)
	p.sendFrame(0, &amqp.End{}, nil)
	p.beginSession(0, 100) // the server sends no end, and the peer can use the channel again
	p.sendFrame(1, newTransfer(0, 0, false), []byte("still fine"))
	require.Equal(t, amqp.Accepted{}, expectFrame[*amqp.Disposition](p).State)
}

func TestTransfer_WithoutCreditEndsTheLink(t *testing.T) {
	held := make(chan *server.Delivery, 100)
	p := serveTest(t, t.Context(), acceptReceivers(func(d *server.Delivery) { held <- d }), server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.attachSender(0, 0)
	expectFrame[*amqp.Attach](p)
	require.EqualValues(t, 10, *expectFrame[*amqp.Flow](p).LinkCredit)
	for id := range uint32(10) { // the server settles no message, so it grants no credit
		p.sendFrame(0, newTransfer(0, id, false), []byte("x"))
	}
	p.sendFrame(0, newTransfer(0, 10, false), []byte("x"))
	require.Equal(t, amqp.TransferLimitExceeded, expectFrame[*amqp.Detach](p).Error.Condition)
}

func TestConn_BoundsLinks(t *testing.T) {
	p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{MaxLinks: 3})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	for handle := range uint32(3) {
		p.attachSender(0, handle)
		expectFrame[*amqp.Attach](p)
		expectFrame[*amqp.Flow](p)
	}
	p.attachSender(0, 3)
	require.Nil(t, expectFrame[*amqp.Attach](p).Target, "this is how a refusal begins")
	require.Equal(t, amqp.ResourceLimitExceeded, expectFrame[*amqp.Detach](p).Error.Condition)
	p.sendFrame(0, &amqp.Detach{Handle: 3, Closed: true}, nil)
	p.sendFrame(0, &amqp.Detach{Handle: 0, Closed: true}, nil)
	expectFrame[*amqp.Detach](p)
	p.attachSender(0, 0)
	require.NotNil(t, expectFrame[*amqp.Attach](p).Target, "there is room again")
	expectFrame[*amqp.Flow](p)
	p.attachSender(0, 1)
	require.Equal(t, amqp.HandleInUse, expectFrame[*amqp.End](p).Error.Condition)
}

func TestConn_BoundsPartlyReceivedMessages(t *testing.T) {
	p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{InBuffer: 2000})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	for handle := range uint32(4) {
		p.attachSender(0, handle)
		expectFrame[*amqp.Attach](p)
		expectFrame[*amqp.Flow](p)
		p.sendFrame(0, newTransfer(handle, handle, true), make([]byte, 900))
	}
	require.EqualValues(t, 3, expectFrame[*amqp.Disposition](p).First)
	require.Equal(t, amqp.ResourceLimitExceeded, expectFrame[*amqp.Detach](p).Error.Condition)
}

// The server buffers a limited amount for a peer that requests messages and reads none. It disconnects this peer after
// a timeout.
func TestConn_EndsIfThePeerNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &testSender{payload: make([]byte, 10_000), settled: true, left: 1_000_000}
		p := serveTest(t, context.Background(), func(l *server.Link) {
			source.link = l
			l.Send(server.Terms{}, source)
		}, server.Options{OutBuffer: 100_000, StallTimeout: time.Minute})
		p.openPeer(amqp.Open{})
		p.beginSession(0, 1000)
		p.attachReceiver(0, 0)
		expectFrame[*amqp.Attach](p)
		p.giveCredit(0, 0, 0, 1_000_000, false)
		synctest.Wait()
		require.Positive(t, source.sentCount())
		require.Less(t, source.sentCount(), 30, "what waits to be written is bounded")
		began := time.Now()
		require.Error(t, <-p.ended)
		require.Equal(t, time.Minute, time.Since(began))
		_ = p.Close()
	})
}

// The server stops reading from a peer that sends many requests and does not read the replies.
func TestConn_StopsReadingFromAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveTest(t, context.Background(), acceptReceivers(acceptAll), server.Options{OutBuffer: 1000, StallTimeout: time.Minute})
		p.openPeer(amqp.Open{})
		p.beginSession(0, 1000)
		handle := uint32(0)
		p.attachSender(0, handle)
		expectFrame[*amqp.Attach](p)
		written := 0
		for { // each flow requests a reply
			_, err := p.Write(amqp.AppendFrame(nil, 0, 0, &amqp.Flow{Handle: &handle, Echo: true}, nil))
			if err != nil {
				break
			}
			written++
		}
		require.Less(t, written, 500)
		<-p.ended
	})
}

func TestIdleTimeout_EndsOnlySilentPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveTest(t, context.Background(), acceptReceivers(acceptAll), server.Options{IdleTimeOut: 10 * time.Second})
		p.openPeer(amqp.Open{IdleTimeOut: 8000})
		began := time.Now()
		for range 5 {
			frame, err := amqp.ReadFrame(p.in, 1000)
			require.NoError(t, err)
			require.Empty(t, frame.Body)
			p.writeBytes(amqp.AppendFrame(nil, 0, 0, nil, nil))
		}
		require.Equal(t, 20*time.Second, time.Since(began), "it says that it is alive twice as often as the peer wants")
		began = time.Now()
		p.expectClose(amqp.ResourceLimitExceeded)
		require.Equal(t, 20*time.Second, time.Since(began), "twice what was agreed")
		_ = p.Close()
	})
}

func TestHandshake_HasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveTest(t, context.Background(), acceptReceivers(acceptAll), server.Options{StallTimeout: 5 * time.Second})
		p.writeBytes(amqp.HeaderAMQP[:])
		began := time.Now()
		require.Error(t, <-p.ended)
		require.Equal(t, 5*time.Second, time.Since(began))
		_ = p.Close()
	})
}

func TestConn_ClosesWithAReasonWhenStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	p := serveTest(t, ctx, acceptReceivers(acceptAll), server.Options{})
	p.openPeer(amqp.Open{})
	stop()
	require.Equal(t, amqp.ConnectionForced, expectFrame[*amqp.Close](p).Error.Condition)
	p.sendFrame(0, &amqp.Close{}, nil)
	require.NoError(t, <-p.ended)
	_ = p.Close()
}

package server_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
)

// offerMessages returns an application that sends the messages of source on every link.
func offerMessages(source *testSender) testApplication {
	return func(l *server.Link) {
		source.link = l
		l.Send(server.Terms{}, source)
	}
}

func TestTransfer_SplitsLongMessages(t *testing.T) {
	got := make(chan []byte, 1)
	long := bytes.Repeat([]byte("0123456789"), 300)
	p := serveTest(t, t.Context(), func(l *server.Link) {
		if l.PeerSends() {
			l.Receive(server.Terms{Credit: 10, MaxMessageSize: 10_000}, testReceiver(func(d *server.Delivery) {
				got <- d.Payload
				d.Settle(amqp.Accepted{})
			}))
			return
		}
		s := &testSender{link: l, payload: long, left: 1}
		l.Send(server.Terms{}, s)
	}, server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{MaxFrameSize: 512})
	p.beginSession(0, 100)
	p.attachSender(0, 0)
	expectFrame[*amqp.Attach](p)
	expectFrame[*amqp.Flow](p)
	p.sendFrame(0, newTransfer(0, 0, true), []byte("lost, because it is "))
	p.sendFrame(0, &amqp.Transfer{Handle: 0, Aborted: true}, nil)
	p.sendFrame(0, newTransfer(0, 1, true), []byte("a"))
	p.sendFrame(0, &amqp.Transfer{Handle: 0, More: true}, []byte("b"))
	p.sendFrame(0, &amqp.Transfer{Handle: 0}, []byte("c"))
	require.Equal(t, "abc", string(<-got))
	require.EqualValues(t, 1, expectFrame[*amqp.Disposition](p).First)

	p.attachReceiver(0, 1)
	expectFrame[*amqp.Attach](p)
	p.giveCredit(0, 1, 0, 1, false)
	var whole []byte
	for parts := 1; ; parts++ {
		performative, payload := p.readFrame()
		part := performative.(*amqp.Transfer)
		require.Equal(t, parts == 1, part.DeliveryID != nil)
		whole = append(whole, payload...)
		if !part.More {
			require.Greater(t, parts, 5)
			break
		}
	}
	require.Equal(t, long, whole)
}

func TestLink_SendsWithinTheWindow(t *testing.T) {
	source := &testSender{payload: []byte("x"), settled: true, left: 5}
	p := serveTest(t, t.Context(), offerMessages(source), server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 2)
	p.attachReceiver(0, 0)
	expectFrame[*amqp.Attach](p)
	handle, credit := uint32(0), uint32(5)
	p.sendFrame(0, &amqp.Flow{IncomingWindow: 2, Handle: &handle, LinkCredit: &credit}, nil)
	for range 2 {
		expectFrame[*amqp.Transfer](p)
	}
	// The next frame is the reply to this flow, so the server sent nothing after the two transfers.
	p.sendFrame(0, &amqp.Flow{IncomingWindow: 2, Echo: true}, nil)
	require.EqualValues(t, 2, expectFrame[*amqp.Flow](p).NextOutgoingID)
	next := uint32(2)
	p.sendFrame(0, &amqp.Flow{NextIncomingID: &next, IncomingWindow: 3}, nil)
	for range 3 {
		expectFrame[*amqp.Transfer](p)
	}
}

func TestDrain_UsesUpTheCredit(t *testing.T) {
	source := &testSender{payload: []byte("x"), settled: true, left: 3}
	p := serveTest(t, t.Context(), offerMessages(source), server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.attachReceiver(0, 0)
	expectFrame[*amqp.Attach](p)
	p.giveCredit(0, 0, 0, 10, true)
	for range 3 {
		expectFrame[*amqp.Transfer](p)
	}
	f := expectFrame[*amqp.Flow](p)
	require.True(t, f.Drain)
	require.EqualValues(t, 0, *f.LinkCredit)
	require.EqualValues(t, 10, *f.DeliveryCount)
}

func TestSettlement_IsImmediateForIncomingMessages(t *testing.T) {
	source := &testSender{payload: []byte("x"), left: 5}
	p := serveTest(t, t.Context(), func(l *server.Link) {
		if l.PeerSends() {
			l.Receive(server.Terms{Credit: 2}, testReceiver(acceptAll))
			return
		}
		offerMessages(source)(l)
	}, server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)

	second, zero := amqp.ReceiverSecond, uint32(0)
	p.sendFrame(0, &amqp.Attach{Name: "s", Handle: 0, Role: amqp.RoleSender, ReceiverSettle: &second, Target: &amqp.Target{Address: "a"}, InitialDeliveryCount: &zero}, nil)
	require.Equal(t, second, *expectFrame[*amqp.Attach](p).ReceiverSettle)
	expectFrame[*amqp.Flow](p)
	p.sendFrame(0, newTransfer(0, 0, false), []byte("x"))
	require.True(t, expectFrame[*amqp.Disposition](p).Settled, "although the peer would have settled first")
	require.EqualValues(t, 2, *expectFrame[*amqp.Flow](p).LinkCredit)
	p.sendFrame(0, &amqp.Disposition{Role: amqp.RoleSender, First: 0, Settled: true}, nil) // this disposition has no effect

	p.attachReceiver(0, 1)
	expectFrame[*amqp.Attach](p)
	p.giveCredit(0, 1, 0, 5, false)
	for range 5 {
		expectFrame[*amqp.Transfer](p)
	}
	last := uint32(4_000_000_000) // the range of a disposition may be much larger than the number of deliveries
	p.sendFrame(0, &amqp.Disposition{Role: amqp.RoleReceiver, First: 0, Last: &last, State: amqp.Released{}}, nil)
	settled := map[uint32]bool{}
	for range 5 {
		d := expectFrame[*amqp.Disposition](p)
		require.True(t, d.Settled)
		require.Equal(t, amqp.Released{}, d.State)
		settled[d.First] = true
	}
	require.Len(t, settled, 5)
}

func TestLink_EndsIfDetachedBeforeItIsAccepted(t *testing.T) {
	gone := make(chan *server.Link, 1)
	p := serveTest(t, t.Context(), func(l *server.Link) {
		l.WhenGone(func() { gone <- l }) // the application neither accepts nor refuses the link
	}, server.Options{})
	defer p.closePeer()
	p.openPeer(amqp.Open{})
	p.beginSession(0, 100)
	p.attachReceiver(0, 0)
	p.sendFrame(0, &amqp.Detach{Handle: 0, Closed: true}, nil)
	expectFrame[*amqp.Detach](p)
	l := <-gone
	l.Send(server.Terms{}, &testSender{}) // Send has no effect after the end of the link
	l.Refuse(amqp.Errorf(amqp.NotFound, "nor now"))
	again := false
	l.WhenGone(func() { again = true })
	require.True(t, again, "who asks later is told at once")
	p.attachReceiver(0, 0)
	p.sendFrame(0, &amqp.End{}, nil)
	expectFrame[*amqp.End](p)
	<-gone
}

func TestSASL_ChecksNamesAndPasswords(t *testing.T) {
	for name, tc := range map[string]struct {
		init amqp.Init
		want uint8
	}{
		"a stranger":          {amqp.Init{Mechanism: "ANONYMOUS"}, 0},
		"who knows the word":  {amqp.Init{Mechanism: "PLAIN", Response: []byte("\x00me\x00right")}, 0},
		"who does not":        {amqp.Init{Mechanism: "PLAIN", Response: []byte("\x00me\x00wrong")}, 1},
		"half an answer":      {amqp.Init{Mechanism: "PLAIN", Response: []byte("me")}, 1},
		"some other way":      {amqp.Init{Mechanism: "SCRAM-SHA-1"}, 1},
		"nothing to say that": {amqp.Init{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := serveTest(t, t.Context(), acceptReceivers(acceptAll), server.Options{Authenticate: func(_, word string) bool { return word == "right" }})
			defer p.closePeer()
			p.writeBytes(amqp.HeaderSASL[:])
			require.Equal(t, amqp.HeaderSASL, p.readHeader())
			require.Contains(t, expectFrame[*amqp.Mechanisms](p).Names, amqp.Symbol("PLAIN"))
			p.writeBytes(amqp.AppendFrame(nil, amqp.FrameSASL, 0, &tc.init, nil))
			require.Equal(t, tc.want, expectFrame[*amqp.Outcome](p).Code)
			if tc.want == 0 {
				p.openPeer(amqp.Open{})
			}
		})
	}
}

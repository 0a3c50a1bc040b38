//go:build unix

package crashsites

import (
	"net"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/amqpframe"
	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// The steps between a hub and its bus. For a received message, "before" is before the hub reads the message, and
// "after" is when the hub reads from the connection again. For a sent message, "before" is before the bus reads the
// message, and "after" is when the bus has accepted it.
const (
	receive steps.Name = "receive" // the hub receives an event
	settle  steps.Name = "settle"  // the hub settles the message of an event
	ask     steps.Name = "ask"     // the hub requests content from a domain
	hear    steps.Name = "hear"    // the hub receives a domain's reply
	tell    steps.Name = "tell"    // the hub notifies a domain that its bundle was dequeued
)

// receiveStep returns the name of the step in which the hub receives from a queue.
func receiveStep(queue string) steps.Name {
	switch {
	case strings.HasPrefix(queue, "dataavailable"):
		return receive
	case strings.HasSuffix(queue, "-reply"):
		return hear
	}
	return steps.Other
}

// sendStep returns the name of the step in which the hub sends to a queue.
func sendStep(queue string) steps.Name {
	switch {
	case strings.HasSuffix(queue, "-dequeue"):
		return tell
	case strings.HasPrefix(queue, "$"), strings.HasSuffix(queue, "-reply"), strings.HasPrefix(queue, "dataavailable"):
		return steps.Other
	}
	return ask
}

// A stepObserver is notified of each step.
type stepObserver interface {
	noteBefore(step steps.Name)
	noteAfter(step steps.Name)
}

// An observedConn is the hub's connection to the bus. It notifies a stepObserver of the steps on the connection.
type observedConn struct {
	net.Conn
	observer stepObserver

	mu       sync.Mutex
	out, in  amqpframe.Deframer
	channel  map[uint64]uint64         // the hub's channel, by the bus's channel
	queues   map[linkEnd]string        // queue of the link, by its sending end
	first    map[linkEnd]uint64        // id of the delivery in progress, by the sending end of its link
	waiting  map[amqpDelivery]waitsFor // deliveries without an outcome
	received []steps.Name              // steps of the messages received since the hub last read from the connection
}

// A linkEnd identifies the sending end of a link.
type linkEnd struct {
	ours            bool
	channel, handle uint64 // channel of the hub's session, and the handle that the sender assigned
}

// An amqpDelivery identifies a delivery by its session and by the id that the sender assigned.
type amqpDelivery struct {
	ours        bool
	channel, id uint64
}

type waitsFor struct {
	step    steps.Name
	settled bool // the hub has settled the delivery
}

func newObservedConn(conn net.Conn, observer stepObserver) *observedConn {
	return &observedConn{
		Conn: conn, observer: observer, channel: make(map[uint64]uint64), queues: make(map[linkEnd]string),
		first: make(map[linkEnd]uint64), waiting: make(map[amqpDelivery]waitsFor),
	}
}

func (l *observedConn) Write(p []byte) (int, error) {
	l.mu.Lock()
	for _, f := range l.out.Feed(p) {
		l.noteSentFrame(&f)
	}
	l.mu.Unlock()
	return l.Conn.Write(p)
}

func (l *observedConn) Read(p []byte) (int, error) {
	l.mu.Lock()
	for _, step := range l.received {
		l.observer.noteAfter(step)
	}
	l.received = nil
	l.mu.Unlock()
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.in.Feed(p[:n]) {
		l.noteReceivedFrame(&f)
	}
	return n, err
}

// The positions of fields in the performatives.
const (
	remoteChannel = 0 // field of begin

	linkHandle, linkRole, linkSource, linkTarget = 1, 2, 5, 6 // fields of attach

	transferHandle, transferID, transferMore = 0, 1, 5

	dispositionRole, dispositionFirst, dispositionLast, dispositionState = 0, 1, 2, 4
)

// noteSentFrame updates the state of links and deliveries with a frame that the hub sends.
func (l *observedConn) noteSentFrame(f *amqpframe.Frame) {
	switch f.Code {
	case amqpframe.Attach:
		if isReceiver := amqpframe.IsTrue(f.Field(linkRole)); !isReceiver {
			l.queues[linkEnd{true, f.Channel, amqpframe.Number(f.Field(linkHandle))}] = amqpframe.Queue(f.Field(linkTarget))
		}
	case amqpframe.Transfer:
		if queue, d, done := l.noteTransfer(f, true, f.Channel); done {
			step := sendStep(queue)
			l.observer.noteBefore(step)
			l.waiting[d] = waitsFor{step: step}
		}
	case amqpframe.Disposition:
		state, _, _ := amqpframe.Described(f.Field(dispositionState))
		if isReceiver := amqpframe.IsTrue(f.Field(dispositionRole)); !isReceiver || state != amqpframe.Accepted {
			return
		}
		for _, d := range deliveriesOf(f, false, f.Channel) {
			if w, ok := l.waiting[d]; ok && w.step == receive && !w.settled {
				l.observer.noteBefore(settle)
				l.waiting[d] = waitsFor{receive, true}
			}
		}
	}
}

// noteReceivedFrame updates the state of links and deliveries with a frame that the bus sends.
func (l *observedConn) noteReceivedFrame(f *amqpframe.Frame) {
	if f.Code == amqpframe.Begin {
		l.channel[f.Channel] = amqpframe.Number(f.Field(remoteChannel))
		return
	}
	channel := l.channel[f.Channel]
	switch f.Code {
	case amqpframe.Attach:
		if isReceiver := amqpframe.IsTrue(f.Field(linkRole)); !isReceiver {
			l.queues[linkEnd{false, channel, amqpframe.Number(f.Field(linkHandle))}] = amqpframe.Queue(f.Field(linkSource))
		}
	case amqpframe.Transfer:
		if queue, d, done := l.noteTransfer(f, false, channel); done {
			step := receiveStep(queue)
			l.observer.noteBefore(step)
			l.waiting[d] = waitsFor{step: step}
			l.received = append(l.received, step)
		}
	case amqpframe.Disposition:
		ours := amqpframe.IsTrue(f.Field(dispositionRole)) // true if the bus is the receiver, so that the hub sent the deliveries
		for _, d := range deliveriesOf(f, ours, channel) {
			w := l.waiting[d]
			switch {
			case ours:
				l.observer.noteAfter(w.step)
			case w.settled:
				l.observer.noteAfter(settle)
			}
			delete(l.waiting, d)
		}
	}
}

// noteTransfer returns the queue and the delivery of a transfer frame, and whether the frame is the last one of its
// message.
func (l *observedConn) noteTransfer(f *amqpframe.Frame, ours bool, channel uint64) (queue string, d amqpDelivery, done bool) {
	end := linkEnd{ours, channel, amqpframe.Number(f.Field(transferHandle))}
	if id := f.Field(transferID); len(id) > 0 && id[0] != 0x40 {
		l.first[end] = amqpframe.Number(id)
	}
	return l.queues[end], amqpDelivery{ours, channel, l.first[end]}, !amqpframe.IsTrue(f.Field(transferMore))
}

// deliveriesOf returns the deliveries that a disposition covers.
func deliveriesOf(f *amqpframe.Frame, ours bool, channel uint64) (about []amqpDelivery) {
	first := amqpframe.Number(f.Field(dispositionFirst))
	last := max(first, amqpframe.Number(f.Field(dispositionLast)))
	for id := first; id <= last && id < first+10_000; id++ {
		about = append(about, amqpDelivery{ours, channel, id})
	}
	return about
}

//go:build unix

package crashpoint

import (
	"net"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// The steps between a hub and its bus. "Before" a message that comes is before the
// hub has seen it, "after" is when the hub comes back for more; "before" one that
// goes is before the bus has seen it, "after" is when the bus has accepted it.
const (
	receive steps.Name = "receive" // an event is taken from the bus
	settle  steps.Name = "settle"  // and done with
	ask     steps.Name = "ask"     // a domain is asked for content
	hear    steps.Name = "hear"    // and answers
	tell    steps.Name = "tell"    // a domain is told that its bundle is in safe hands
)

// comes names what the hub receives from a queue, goes what it sends there.
func comes(queue string) steps.Name {
	switch {
	case strings.HasPrefix(queue, "dataavailable"):
		return receive
	case strings.HasSuffix(queue, "-reply"):
		return hear
	}
	return steps.Other
}

func goes(queue string) steps.Name {
	switch {
	case strings.HasSuffix(queue, "-dequeue"):
		return tell
	case strings.HasPrefix(queue, "$"), strings.HasSuffix(queue, "-reply"), strings.HasPrefix(queue, "dataavailable"):
		return steps.Other
	}
	return ask
}

// A passage is told of each step that comes by.
type passage interface {
	before(step steps.Name)
	after(step steps.Name)
}

// A busLine is a connection to the bus that tells of the steps that are taken on it.
type busLine struct {
	net.Conn
	fuse passage

	mu      sync.Mutex
	out, in deframer
	channel map[uint64]uint64     // ours, by that of the bus
	queues  map[linkEnd]string    // by the end of the link from which messages come
	first   map[linkEnd]uint64    // the delivery whose frames are on their way
	waiting map[delivery]waitsFor // for what the other side says of them
	taken   []steps.Name          // what the hub has been given, and not come back for more
}

// A linkEnd is one of the two ends of a link, which is where messages come from.
type linkEnd struct {
	ours            bool
	channel, handle uint64 // of our session, and as the side that sends calls it
}

// A delivery is numbered by the side that sends it.
type delivery struct {
	ours        bool
	channel, id uint64
}

type waitsFor struct {
	step    steps.Name
	settled bool // the hub has said that it is done with it
}

func newBusLine(conn net.Conn, fuse passage) *busLine {
	return &busLine{
		Conn: conn, fuse: fuse, channel: make(map[uint64]uint64), queues: make(map[linkEnd]string),
		first: make(map[linkEnd]uint64), waiting: make(map[delivery]waitsFor),
	}
}

func (l *busLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	for _, f := range l.out.feed(p) {
		l.goes(&f)
	}
	l.mu.Unlock()
	return l.Conn.Write(p)
}

func (l *busLine) Read(p []byte) (int, error) {
	l.mu.Lock()
	for _, step := range l.taken {
		l.fuse.after(step)
	}
	l.taken = nil
	l.mu.Unlock()
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.in.feed(p[:n]) {
		l.comes(&f)
	}
	return n, err
}

// The fields of the performatives, by their places.
const (
	remoteChannel = 0 // of begin

	linkHandle, linkRole, linkSource, linkTarget = 1, 2, 5, 6 // of attach

	transferHandle, transferID, transferMore = 0, 1, 5

	dispositionRole, dispositionFirst, dispositionLast, dispositionState = 0, 1, 2, 4
)

// goes takes in what the hub sends.
func (l *busLine) goes(f *frame) {
	switch f.code {
	case attach:
		if isReceiver := isTrue(f.field(linkRole)); !isReceiver {
			l.queues[linkEnd{true, f.channel, number(f.field(linkHandle))}] = queueOf(f.field(linkTarget))
		}
	case transfer:
		if queue, d, done := l.transfer(f, true, f.channel); done {
			step := goes(queue)
			l.fuse.before(step)
			l.waiting[d] = waitsFor{step: step}
		}
	case disposition:
		state, _, _ := described(f.field(dispositionState))
		if isReceiver := isTrue(f.field(dispositionRole)); !isReceiver || state != accepted {
			return
		}
		for _, d := range deliveries(f, false, f.channel) {
			if w, ok := l.waiting[d]; ok && w.step == receive && !w.settled {
				l.fuse.before(settle)
				l.waiting[d] = waitsFor{receive, true}
			}
		}
	}
}

// comes takes in what the bus sends.
func (l *busLine) comes(f *frame) {
	if f.code == begin {
		l.channel[f.channel] = number(f.field(remoteChannel))
		return
	}
	channel := l.channel[f.channel]
	switch f.code {
	case attach:
		if isReceiver := isTrue(f.field(linkRole)); !isReceiver {
			l.queues[linkEnd{false, channel, number(f.field(linkHandle))}] = queueOf(f.field(linkSource))
		}
	case transfer:
		if queue, d, done := l.transfer(f, false, channel); done {
			step := comes(queue)
			l.fuse.before(step)
			l.waiting[d] = waitsFor{step: step}
			l.taken = append(l.taken, step)
		}
	case disposition:
		ours := isTrue(f.field(dispositionRole)) // the bus speaks as the receiver of what is ours
		for _, d := range deliveries(f, ours, channel) {
			w := l.waiting[d]
			switch {
			case ours:
				l.fuse.after(w.step)
			case w.settled:
				l.fuse.after(settle)
			}
			delete(l.waiting, d)
		}
	}
}

// transfer reports of a frame of a message which it is, and whether it is the last.
func (l *busLine) transfer(f *frame, ours bool, channel uint64) (queue string, d delivery, done bool) {
	end := linkEnd{ours, channel, number(f.field(transferHandle))}
	if id := f.field(transferID); len(id) > 0 && id[0] != 0x40 {
		l.first[end] = number(id)
	}
	return l.queues[end], delivery{ours, channel, l.first[end]}, !isTrue(f.field(transferMore))
}

// deliveries are those that a disposition is about.
func deliveries(f *frame, ours bool, channel uint64) (about []delivery) {
	first := number(f.field(dispositionFirst))
	last := max(first, number(f.field(dispositionLast)))
	for id := first; id <= last && id < first+10_000; id++ {
		about = append(about, delivery{ours, channel, id})
	}
	return about
}

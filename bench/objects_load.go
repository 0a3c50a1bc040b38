package bench

import (
	"fmt"
	"math/rand/v2"

	"github.com/messagehub/messagehub/bench/objectclient"
)

// objectBucket is the bucket of all objects.
const objectBucket = "bench"

// The range of the number of events in a message.
const (
	minObjectMessage = 10
	maxObjectMessage = 100
)

// An objectSource creates events of objects in a bucket.
type objectSource struct {
	rng       *rand.Rand
	sequencer int64
	objects   int
	known     []objectclient.Event // the latest event of each object
	sent      []objectclient.Event
}

func newObjectSource(seed uint64) *objectSource {
	return &objectSource{rng: rand.New(rand.NewPCG(seed, 4))}
}

// objectKey returns the key of the n-th object. It has 40 characters.
func objectKey(n int) string { return fmt.Sprintf("runs/2026-03-01/%010d/sample.bam.txt", n) }

// createdEvent returns an event that creates a new object.
func (s *objectSource) createdEvent() objectclient.Event {
	s.sequencer++
	e := objectclient.Event{Key: objectKey(s.objects), Sequencer: s.sequencer}
	s.objects++
	s.known, s.sent = append(s.known, e), append(s.sent, e)
	return e
}

// changedEvent returns a new event of a known object, which deletes the object or creates it again.
func (s *objectSource) changedEvent() objectclient.Event {
	return s.changedObject(s.rng.IntN(len(s.known)))
}

func (s *objectSource) changedObject(n int) objectclient.Event {
	s.sequencer++
	e := &s.known[n]
	e.Deleted, e.Sequencer = !e.Deleted, s.sequencer
	s.sent = append(s.sent, *e)
	return *e
}

// repeatedEvent returns an event that was returned before.
func (s *objectSource) repeatedEvent() objectclient.Event { return s.sent[s.rng.IntN(len(s.sent))] }

// mixedEvent returns with equal probability an event of a new object, an event of a known object,
// or a repeated event.
func (s *objectSource) mixedEvent() objectclient.Event {
	return [...]func() objectclient.Event{s.createdEvent, s.changedEvent, s.repeatedEvent}[s.rng.IntN(3)]()
}

// An objectLoad holds messages, and the expected results of their events.
type objectLoad struct {
	messages [][]byte
	events   int
	stored   int // number of events that are not duplicates
}

// newLoad returns messages with n events, between atLeast and atMost events per message.
func (s *objectSource) newLoad(n, atLeast, atMost int, next func() objectclient.Event) objectLoad {
	l, before := objectLoad{events: n}, len(s.sent)
	for n > 0 {
		events := make([]objectclient.Event, min(n, atLeast+s.rng.IntN(atMost-atLeast+1)))
		for i := range events {
			events[i] = next()
		}
		l.messages = append(l.messages, objectclient.Message(objectBucket, events...))
		n -= len(events)
	}
	l.stored = len(s.sent) - before
	return l
}

// releaseMemory releases the memory of all events. Later events are of new objects.
func (s *objectSource) releaseMemory() { s.known, s.sent = nil, nil }

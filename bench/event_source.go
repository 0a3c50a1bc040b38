package bench

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/domain"
)

// An eventSource creates unique events, actors and ids, which depend only on its seed. Only one
// goroutine may use it.
type eventSource struct {
	seed    uint64
	made    uint64
	payload int // bytes of the payload of each event; 0 means no payload
}

// newID returns a UUID of version 8, in which an application chooses the bits.
func (s *eventSource) newID() (id [16]byte) {
	s.made++
	binary.BigEndian.PutUint64(id[:], s.seed)
	binary.BigEndian.PutUint64(id[8:], s.made)
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80 // RFC 9562 variant
	return id
}

// newActor returns an actor without events.
func (s *eventSource) newActor() domain.ActorID {
	id := s.newID()
	return must(domain.ParseActorID(uuid.UUID(id).String()))
}

// newActors returns n actors without events.
func (s *eventSource) newActors(n int) []domain.ActorID {
	actors := make([]domain.ActorID, n)
	for i := range actors {
		actors[i] = s.newActor()
	}
	return actors
}

// newEvents returns n events of one cabinet of an actor. The weight of each event is weight KB.
func (s *eventSource) newEvents(n int, to domain.ActorID, weight domain.Weight) []domain.Event {
	events := make([]domain.Event, n)
	for i := range events {
		events[i] = domain.Event{
			ID: s.newID(), Recipient: to, Origin: domain.TimeSeries, ContentType: timeSeries, DocumentType: rsm012,
			SupportsBundling: true, Weight: weight, Payload: s.payloadOf(),
		}
	}
	return events
}

// payloadOf returns a JSON string with the size of a payload, or nil if events have
// no payload.
func (s *eventSource) payloadOf() []byte {
	if s.payload == 0 {
		return nil
	}
	const frame = `{"values":""}`
	return fmt.Appendf(nil, `{"values":"%s"}`, strings.Repeat("7", max(0, s.payload-len(frame))))
}

var (
	timeSeries = must(domain.ParseContentType("timeseries-v1"))
	rsm012     = must(domain.ParseDocumentType("RSM012"))
	allGroups  = domain.DefaultGroups().All()
)

// must returns v, and panics if err is not nil. It is for constant texts.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

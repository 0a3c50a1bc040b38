package repositorytest

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"

	"github.com/messagehub/messagehub/domain"
)

// The groups and the origins of the energy market.
var (
	TimeSeries   = group("timeseries")
	Aggregations = group("aggregations")
	MasterData   = group("masterdata")
	AllGroups    = domain.DefaultGroups().All()
	AllOrigins   = domain.DefaultGroups().Origins()
)

// NewActor returns an actor that was not used before.
func NewActor() domain.ActorID {
	return must(domain.ParseActorID("actor-" + rand.Text()))
}

// NewEventID returns an id that was not used before.
func NewEventID() domain.EventID { return newUUID() }

// NewBundleID returns an id that was not used before.
func NewBundleID() domain.BundleID { return newUUID() }

// A Change modifies a new event.
type Change func(*domain.Event)

// Event returns a new event for an actor. By default, it is of the group TimeSeries, weighs 1 KB,
// supports bundling and has no payload.
func Event(to domain.ActorID, changes ...Change) domain.Event {
	e := domain.Event{
		ID:               NewEventID(),
		Recipient:        to,
		Origin:           domain.TimeSeries,
		ContentType:      contentType("timeseries-v1"),
		DocumentType:     documentType("RSM012"),
		SupportsBundling: true,
		Weight:           1,
	}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// Events returns n new events like [Event].
func Events(n int, to domain.ActorID, changes ...Change) []domain.Event {
	events := make([]domain.Event, n)
	for i := range events {
		events[i] = Event(to, changes...)
	}
	return events
}

// WithOrigin sets the origin.
func WithOrigin(o domain.Origin) Change { return func(e *domain.Event) { e.Origin = o } }

// WithContentType sets the content type.
func WithContentType(s string) Change {
	return func(e *domain.Event) { e.ContentType = contentType(s) }
}

// WithDocumentType sets the document type.
func WithDocumentType(s string) Change {
	return func(e *domain.Event) { e.DocumentType = documentType(s) }
}

// WithWeight sets the weight.
func WithWeight(kb domain.Weight) Change { return func(e *domain.Event) { e.Weight = kb } }

// WithoutBundling makes an event that does not support bundling.
func WithoutBundling(e *domain.Event) { e.SupportsBundling = false }

// WithPayload sets the payload.
func WithPayload(payload string) Change { return func(e *domain.Event) { e.Payload = []byte(payload) } }

func group(s string) domain.Group               { return must(domain.ParseGroup(s)) }
func contentType(s string) domain.ContentType   { return must(domain.ParseContentType(s)) }
func documentType(s string) domain.DocumentType { return must(domain.ParseDocumentType(s)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The UUIDs of this process contain a counter, so they sort in the order of their creation.
var (
	process [8]byte
	made    atomic.Uint64
)

func init() { _, _ = rand.Read(process[:]) } // cannot fail, according to its documentation

func newUUID() (id [16]byte) {
	copy(id[:], process[:])
	binary.BigEndian.PutUint64(id[8:], made.Add(1))
	id[6] = id[6]&0x0f | 0x80 // version 8: custom
	id[8] = id[8]&0x3f | 0x80 // RFC 9562 variant
	return id
}

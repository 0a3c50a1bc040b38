package domain

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// An Event is a DataAvailable event, with which a domain of the market announces data for a
// recipient.
type Event struct {
	ID               EventID
	Recipient        ActorID
	Origin           Origin
	ContentType      ContentType
	DocumentType     DocumentType
	SupportsBundling bool
	Weight           Weight
	Payload          []byte // the data itself, as compact JSON; nil: the domain did not send it
}

// Check returns an Invalid error if a required field of e is missing. The error text begins with
// the field's JSON name.
func (e *Event) Check() error {
	switch {
	case e.ID == EventID{}:
		return Errorf(Invalid, "id: missing")
	case e.Recipient == ActorID{}:
		return Errorf(Invalid, "recipient: missing")
	case e.Origin == Origin{}:
		return Errorf(Invalid, "origin: missing")
	case e.ContentType == ContentType{}:
		return Errorf(Invalid, "contentType: missing")
	case e.DocumentType == DocumentType{}:
		return Errorf(Invalid, "documentType: missing")
	case e.Weight < 1:
		return Errorf(Invalid, "weight: want at least 1 (KB), got %d", e.Weight)
	case e.Payload != nil && len(e.Payload) == 0:
		return Errorf(Invalid, "payload: empty; leave it out instead")
	}
	return nil
}

// Cabinet returns the key of the cabinet that the event belongs to.
func (e *Event) Cabinet() CabinetKey {
	return CabinetKey{Recipient: e.Recipient, Origin: e.Origin, ContentType: e.ContentType}
}

// A Digest identifies the content of an event.
type Digest [16]byte

// Digest returns the first half of a SHA-256 over all fields except the id. Each field is preceded
// by its length, so that different contents give different bytes. If two events have the same id
// and the same digest, they are one event that was sent twice.
func (e *Event) Digest() Digest {
	h := make([]byte, 0, 512)
	for _, s := range [...]string{e.Recipient.s, e.Origin.s, e.ContentType.s, e.DocumentType.s} {
		h = binary.AppendUvarint(h, uint64(len(s)))
		h = append(h, s...)
	}
	if e.SupportsBundling {
		h = append(h, 1)
	} else {
		h = append(h, 0)
	}
	h = binary.AppendVarint(h, int64(e.Weight))
	if e.Payload != nil { // an event without a payload has a different digest from one with any payload
		payload := sha256.Sum256(e.Payload)
		h = append(h, payload[:]...)
	}
	sum := sha256.Sum256(h)
	return Digest(sum[:16])
}

// A CabinetKey names a cabinet: the events of one recipient, origin and
// content type, in the order in which they were saved.
type CabinetKey struct {
	Recipient   ActorID
	Origin      Origin
	ContentType ContentType
}

// A Sequence is the position of an event among all events of its recipient. It is unique,
// strictly ascending and never reused; 0 is before the first event.
type Sequence int64

// A Weight is the size of the data that an event announces, in KB. A valid
// weight is at least 1.
type Weight int64

// MaxBundleWeight is the limit for the weight of a bundle of several events: 50 MB.
const MaxBundleWeight Weight = 50 * 1024

// NewWeight accepts 1 and more.
func NewWeight(kb int64) (Weight, error) {
	if kb < 1 {
		return 0, Errorf(Invalid, "weight: want at least 1 (KB), got %d", kb)
	}
	return Weight(kb), nil
}

// Add returns the sum of two weights. If the sum would overflow, Add returns the largest weight, so
// that no further event fits into the bundle.
func (w Weight) Add(x Weight) Weight {
	if w > math.MaxInt64-x {
		return math.MaxInt64
	}
	return w + x
}

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// sendConflict sends the id of a stored event with different content, together with a new event. The hub must reject
// the id of the stored event and accept the new event.
func (s *batchSender) sendConflict() bool {
	e, ok := s.pickStored()
	if !ok {
		return true
	}
	byBus := s.route != overHTTP || s.publisher != nil && s.rng.IntN(2) == 0
	s.changeEvent(&e, byBus && s.publisher.form == domainclient.Protobuf)
	if byBus && s.route == overHTTP { // events that the sender later sends over HTTP would overtake a new event on the bus
		s.sim.work.poison.expectConflict(e.ID)
		return s.publisher.publishEvents([]sentData{e})
	}
	fresh := s.newBatch()[:1]
	s.sim.work.ledger.noteSent(s.number, fresh)
	batch := append([]sentData{e}, fresh...)
	if byBus {
		s.sim.work.poison.expectConflict(e.ID)
		s.sim.MarkReached("an event came with other content, over the bus")
		if !s.publisher.publishEvents(batch) {
			return false
		}
	} else if !s.sendRejected(batch) {
		return false
	}
	s.sim.work.ledger.noteAccepted(fresh)
	s.sent = append(s.sent, fresh)
	return true
}

// pickStored returns an event that the hub has certainly stored.
func (s *batchSender) pickStored() (sentData, bool) {
	if len(s.sent) == 0 {
		return sentData{}, false
	}
	batch := s.sent[s.rng.IntN(len(s.sent))]
	e := batch[s.rng.IntN(len(batch))]
	return e, (s.route != overQueue || s.sim.work.ledger.isReceived(e.ID)) && s.sim.work.ledger.isKept(e.ID, s.sim.plan.retention)
}

// changeEvent changes the content of an event, but not the id.
func (s *batchSender) changeEvent(e *sentData, plain bool) {
	kinds := 5
	if plain || e.Origin == s.sim.plan.inline.String() { // the payload is the content of the bundle, or is not sent
		kinds = 4
	}
	switch s.rng.IntN(kinds) {
	case 0:
		e.DocumentType += "-changed"
	case 1:
		e.ContentType += "-changed"
	case 2:
		e.SupportsBundling = !e.SupportsBundling
	case 3:
		if e.Weight++; e.Weight > 3 {
			e.Weight -= 2
		}
	default:
		if e.Payload == nil {
			e.Payload = []byte(`{"of":"nothing"}`)
		} else {
			e.Payload = nil
		}
	}
	if plain {
		e.Payload = nil
	}
}

// sendRejected sends a batch. The hub must reject only its first event.
func (s *batchSender) sendRejected(batch []sentData) bool {
	body := encodeEvents(batch)
	for {
		r, err := s.call(s.sim.ctx, http.MethodPost, "/v1/data-available", body, "Content-Type", "application/json")
		switch {
		case err == nil && r.status == http.StatusConflict:
			var answer struct {
				Type                 string
				Accepted, Duplicates int
				Errors               []struct{ Pointer string }
			}
			if err := json.Unmarshal(r.body, &answer); err != nil || !strings.HasSuffix(answer.Type, ":already-stored") ||
				answer.Accepted+answer.Duplicates != len(batch)-1 || len(answer.Errors) != 1 || answer.Errors[0].Pointer != "/0/id" {
				s.sim.Fail(fmt.Errorf("H2: the first of %d events had different content than before, but the response was %s", len(batch), r.body))
				return false
			}
			s.sim.MarkReached("an event came with other content, over HTTP")
			return true
		case err == nil && r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable:
			s.sim.Fail(fmt.Errorf("H2: event %s was sent with different content than before, but the response was %d %s", batch[0].ID, r.status, r.body))
			return false
		}
		if !s.pause(time.Duration(s.rng.IntN(1000)) * time.Millisecond) {
			return false
		}
	}
}

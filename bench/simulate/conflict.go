package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// conflict sends the id of an event that the hub has with other content, beside a new
// event. The first must be rejected by name, and the other one be taken.
func (s *sender) conflict() bool {
	e, ok := s.stored()
	if !ok {
		return true
	}
	byBus := s.route != overHTTP || s.bus != nil && s.d.n(2) == 0
	s.change(&e, byBus && s.bus.form == domainclient.Protobuf)
	if byBus && s.route == overHTTP { // a new event beside it would be overtaken
		s.w.poisons.conflicting(e.ID)
		return s.bus.persist([]event{e})
	}
	fresh := s.batch()[:1]
	s.w.ledger.sent(s.number, fresh)
	batch := append([]event{e}, fresh...)
	if byBus {
		s.w.poisons.conflicting(e.ID)
		s.w.reached("an event came with other content, over the bus")
		if !s.bus.persist(batch) {
			return false
		}
	} else if !s.rejected(batch) {
		return false
	}
	s.w.ledger.accepted(fresh)
	s.sent = append(s.sent, fresh)
	return true
}

// stored returns an event that the hub has for certain.
func (s *sender) stored() (event, bool) {
	if len(s.sent) == 0 {
		return event{}, false
	}
	batch := s.sent[s.d.n(len(s.sent))]
	e := batch[s.d.n(len(batch))]
	return e, (s.route != overQueue || s.w.ledger.isOut(e.ID)) && s.w.ledger.isKept(e.ID, s.w.plan.retention)
}

// change makes an event another one with the same id.
func (s *sender) change(e *event, plain bool) {
	kinds := 5
	if plain || e.Origin == s.w.plan.inline.String() { // where the payload cannot be what it is not
		kinds = 4
	}
	switch s.d.n(kinds) {
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

// rejected sends a batch whose first event is to be rejected, alone.
func (s *sender) rejected(batch []event) bool {
	body := eventsJSON(batch)
	for {
		r, err := s.call(s.w.ctx, http.MethodPost, "/v1/data-available", body, "Content-Type", "application/json")
		switch {
		case err == nil && r.status == http.StatusConflict:
			var answer struct {
				Type                 string
				Accepted, Duplicates int
				Errors               []struct{ Pointer string }
			}
			if err := json.Unmarshal(r.body, &answer); err != nil || !strings.HasSuffix(answer.Type, ":already-stored") ||
				answer.Accepted+answer.Duplicates != len(batch)-1 || len(answer.Errors) != 1 || answer.Errors[0].Pointer != "/0/id" {
				s.w.fail(fmt.Errorf("H2: the first of %d events had other content, and this was answered %s", len(batch), r.body))
				return false
			}
			s.w.reached("an event came with other content, over HTTP")
			return true
		case err == nil && r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable:
			s.w.fail(fmt.Errorf("H2: event %s was sent with other content, and this was answered %d %s", batch[0].ID, r.status, r.body))
			return false
		}
		if !s.pause(time.Duration(s.d.n(1000)) * time.Millisecond) {
			return false
		}
	}
}

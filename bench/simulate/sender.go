package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/bench/simulate/history"
	"github.com/messagehub/messagehub/domain"
)

// An event is what a domain says of its data.
type event struct {
	ID               string          `json:"id"`
	Recipient        string          `json:"recipient"`
	Origin           string          `json:"origin"`
	ContentType      string          `json:"contentType"`
	DocumentType     string          `json:"documentType"`
	SupportsBundling bool            `json:"supportsBundling"`
	Weight           int64           `json:"weight"`
	Payload          json.RawMessage `json:"payload,omitempty"`
	Sequence         int64           `json:"sequence,omitempty"` // in the body of a bundle
}

func (e *event) cabinet() string { return e.Recipient + "|" + e.Origin + "|" + e.ContentType }

// A sender is a domain that announces events, each batch until it is told that they
// are stored.
type sender struct {
	party
	number int
	sent   [][]event
	route  route
	bus    *announcer // nil: this world's senders have none
}

func (w *world) senders() ([]*sender, error) {
	all := make([]*sender, w.plan.senders)
	for i := range all {
		s := &sender{party: w.newParty(fmt.Sprintf("sender-%d", i), uint64(10+i)), number: i}
		if all[i] = s; w.plan.routes == nil {
			continue
		}
		s.route = w.plan.routes[i]
		queue, form := "", domainclient.JSON
		if s.route == overQueue {
			queue = contract.DataAvailableQueue
			w.ledger.disorder(i)
		}
		if s.route != overHTTP && s.d.n(2) == 0 {
			form = domainclient.Protobuf
		}
		var err error
		if s.bus, err = s.newAnnouncer(form, queue); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func actorName(i int) string { return fmt.Sprintf("actor-%d", i) }

func (s *sender) send() {
	for range s.w.plan.batches {
		if len(s.sent) > 0 && s.d.n(5) == 0 && !s.sendAgain() {
			return
		}
		batch := s.batch()
		s.w.ledger.sent(s.number, batch)
		if !s.announce(batch) {
			return
		}
		s.w.ledger.accepted(batch)
		s.sent = append(s.sent, batch)
		if s.w.plan.poison && s.route != overHTTP && s.d.n(2) == 0 && !s.poison() {
			return
		}
		if s.w.plan.conflicts && s.d.n(2) == 0 && !s.conflict() {
			return
		}
		if !s.pause(time.Duration(s.d.n(2000)) * time.Millisecond) {
			return
		}
	}
}

// close leaves the bus.
func (s *sender) close() {
	if s.bus != nil {
		s.bus.end(false)
	}
}

// announce sends a batch, the way that this sender sends.
func (s *sender) announce(batch []event) bool {
	if s.route == overHTTP {
		return s.persist(batch, "")
	}
	return s.bus.persist(batch)
}

// sendAgain sends what a domain is not sure of a second time, some of it another way. What
// the bus has may not have come to the hub yet, and must not be overtaken.
func (s *sender) sendAgain() bool {
	batch := s.sent[s.d.n(len(s.sent))]
	if slices.ContainsFunc(batch, func(e event) bool { return !s.w.ledger.isKept(e.ID, s.w.plan.retention) }) {
		return true
	}
	isStored := s.route == overHTTP
	if s.bus != nil {
		isStored = isStored || !slices.ContainsFunc(batch, func(e event) bool { return !s.w.ledger.isOut(e.ID) })
		if !isStored || s.d.n(2) == 0 {
			s.w.reached("events were sent again over the bus")
			return s.bus.persist(batch)
		}
	}
	s.w.reached("events were sent again after they were accepted")
	return s.persist(batch, "again")
}

// batch makes events, most of them for one recipient.
func (s *sender) batch() []event {
	batch := make([]event, 1+s.d.n(5))
	recipient := s.d.n(s.w.plan.recipients)
	for i := range batch {
		if s.d.n(10) == 0 {
			recipient = s.d.n(s.w.plan.recipients)
		}
		origin := s.w.plan.origins[s.d.n(len(s.w.plan.origins))]
		e := event{
			ID: s.newID().String(), Recipient: actorName(recipient), Origin: origin.String(),
			ContentType: []string{"type-a", "type-b"}[s.d.n(2)], DocumentType: []string{"RSM012", "RSM014"}[s.d.n(2)],
			SupportsBundling: s.d.n(5) > 0, Weight: int64(1 + s.d.n(3)),
		}
		if s.d.n(20) == 0 {
			e.Weight = int64(domain.MaxBundleWeight) - int64(s.d.n(3))
		}
		if s.d.n(3) == 0 || origin == s.w.plan.inline {
			e.Payload, _ = json.Marshal(map[string]string{"of": e.ID}) // strings can be encoded
		}
		if s.bus != nil && s.bus.form == domainclient.Protobuf { // which carries no payloads
			e.Payload = nil
			if origin == s.w.plan.inline {
				e.Origin = s.w.plan.origins[0].String()
			}
		}
		batch[i] = e
	}
	return batch
}

// persist sends a batch until it is accepted. It reports false if the world ends.
func (s *sender) persist(batch []event, note string) bool {
	body := eventsJSON(batch)
	for pause := time.Second; ; pause = min(2*pause, 20*time.Second) {
		tick, came := s.w.mailboxes.now(), history.Unknown
		r, err := s.call(s.w.ctx, http.MethodPost, "/v1/data-available", body, "Content-Type", "application/json")
		if err == nil && r.status == http.StatusAccepted {
			came = history.Accepted
		}
		s.w.mailboxes.sent(s.number, tick, batch, came)
		switch {
		case err == nil && r.status == http.StatusAccepted:
			var counts struct{ Accepted, Duplicates int }
			if err := json.Unmarshal(r.body, &counts); err != nil || counts.Accepted+counts.Duplicates != len(batch) || note != "" && counts.Accepted > 0 {
				s.w.fail(fmt.Errorf("H2: %d events, sent %s, were answered %s", len(batch), note, r.body))
			}
			return true
		case err == nil && r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable:
			s.w.fail(fmt.Errorf("events were answered %d %s", r.status, r.body))
			return false
		}
		if !s.pause(pause/2 + time.Duration(s.d.n(int(pause)))) {
			return false
		}
	}
}

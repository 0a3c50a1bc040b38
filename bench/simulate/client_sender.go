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

// A sentData is an event in the form that a domain sends.
type sentData struct {
	ID               string          `json:"id"`
	Recipient        string          `json:"recipient"`
	Origin           string          `json:"origin"`
	ContentType      string          `json:"contentType"`
	DocumentType     string          `json:"documentType"`
	SupportsBundling bool            `json:"supportsBundling"`
	Weight           int64           `json:"weight"`
	Payload          json.RawMessage `json:"payload,omitempty"`
	Sequence         int64           `json:"sequence,omitempty"` // set only in the body of a bundle
}

func (e *sentData) cabinetName() string { return e.Recipient + "|" + e.Origin + "|" + e.ContentType }

// A batchSender is a domain that sends events. It repeats each batch until the hub reports that it is stored.
type batchSender struct {
	baseClient
	number    int
	sent      [][]sentData
	route     route
	publisher *busPublisher // nil if the sender uses only HTTP
}

func (sim *simulation) newSenders() ([]*batchSender, error) {
	all := make([]*batchSender, sim.plan.senders)
	for i := range all {
		s := &batchSender{baseClient: sim.newClient(fmt.Sprintf("sender-%d", i), uint64(10+i)), number: i}
		if all[i] = s; sim.plan.routes == nil {
			continue
		}
		s.route = sim.plan.routes[i]
		queue, form := "", domainclient.JSON
		if s.route == overQueue {
			queue = contract.DataAvailableQueue
			sim.work.ledger.allowAnyOrder(i)
		}
		if s.route != overHTTP && s.rng.IntN(2) == 0 {
			form = domainclient.Protobuf
		}
		var err error
		if s.publisher, err = s.newBusPublisher(form, queue); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func actorName(i int) string { return fmt.Sprintf("actor-%d", i) }

func (s *batchSender) sendBatches() {
	for range s.sim.plan.batches {
		if len(s.sent) > 0 && s.rng.IntN(5) == 0 && !s.sendAgain() {
			return
		}
		batch := s.newBatch()
		s.sim.work.ledger.noteSent(s.number, batch)
		if !s.sendBatch(batch) {
			return
		}
		s.sim.work.ledger.noteAccepted(batch)
		s.sent = append(s.sent, batch)
		if s.sim.plan.sendsPoison && s.route != overHTTP && s.rng.IntN(2) == 0 && !s.sendPoison() {
			return
		}
		if s.sim.plan.sendsConflicts && s.rng.IntN(2) == 0 && !s.sendConflict() {
			return
		}
		if !s.pause(time.Duration(s.rng.IntN(2000)) * time.Millisecond) {
			return
		}
	}
}

// closePublisher closes the connection to the bus.
func (s *batchSender) closePublisher() {
	if s.publisher != nil {
		s.publisher.closeClient(false)
	}
}

// sendBatch sends a batch by the sender's route: HTTP, or a queue of the bus.
func (s *batchSender) sendBatch(batch []sentData) bool {
	if s.route == overHTTP {
		return s.sendUntilAccepted(batch, "")
	}
	return s.publisher.publishEvents(batch)
}

// sendAgain repeats an earlier batch, sometimes by another route. A batch that may still be on the bus is not repeated
// over HTTP, because the repetition would overtake the batch.
func (s *batchSender) sendAgain() bool {
	batch := s.sent[s.rng.IntN(len(s.sent))]
	if slices.ContainsFunc(batch, func(e sentData) bool { return !s.sim.work.ledger.isKept(e.ID, s.sim.plan.retention) }) {
		return true
	}
	isStored := s.route == overHTTP
	if s.publisher != nil {
		isStored = isStored || !slices.ContainsFunc(batch, func(e sentData) bool { return !s.sim.work.ledger.isReceived(e.ID) })
		if !isStored || s.rng.IntN(2) == 0 {
			s.sim.MarkReached("events were sent again over the bus")
			return s.publisher.publishEvents(batch)
		}
	}
	s.sim.MarkReached("events were sent again after they were accepted")
	return s.sendUntilAccepted(batch, "again")
}

// newBatch returns new events, most of them for one recipient.
func (s *batchSender) newBatch() []sentData {
	batch := make([]sentData, 1+s.rng.IntN(5))
	recipient := s.rng.IntN(s.sim.plan.recipients)
	for i := range batch {
		if s.rng.IntN(10) == 0 {
			recipient = s.rng.IntN(s.sim.plan.recipients)
		}
		origin := s.sim.plan.origins[s.rng.IntN(len(s.sim.plan.origins))]
		e := sentData{
			ID: s.newID().String(), Recipient: actorName(recipient), Origin: origin.String(),
			ContentType: []string{"type-a", "type-b"}[s.rng.IntN(2)], DocumentType: []string{"RSM012", "RSM014"}[s.rng.IntN(2)],
			SupportsBundling: s.rng.IntN(5) > 0, Weight: int64(1 + s.rng.IntN(3)),
		}
		if s.rng.IntN(20) == 0 {
			e.Weight = int64(domain.MaxBundleWeight) - int64(s.rng.IntN(3))
		}
		if s.rng.IntN(3) == 0 || origin == s.sim.plan.inline {
			e.Payload, _ = json.Marshal(map[string]string{"of": e.ID}) // strings can be encoded
		}
		if s.publisher != nil && s.publisher.form == domainclient.Protobuf { // protobuf events have no payload
			e.Payload = nil
			if origin == s.sim.plan.inline {
				e.Origin = s.sim.plan.origins[0].String()
			}
		}
		batch[i] = e
	}
	return batch
}

// sendUntilAccepted sends a batch until it is accepted. It returns false if the simulation ends.
func (s *batchSender) sendUntilAccepted(batch []sentData, note string) bool {
	body := encodeEvents(batch)
	for pause := time.Second; ; pause = min(2*pause, 20*time.Second) {
		tick, came := s.sim.work.mailboxes.nextTick(), history.Unknown
		r, err := s.call(s.sim.ctx, http.MethodPost, "/v1/data-available", body, "Content-Type", "application/json")
		if err == nil && r.status == http.StatusAccepted {
			came = history.Accepted
		}
		s.sim.work.mailboxes.noteSent(s.number, tick, batch, came)
		switch {
		case err == nil && r.status == http.StatusAccepted:
			var counts struct{ Accepted, Duplicates int }
			if err := json.Unmarshal(r.body, &counts); err != nil || counts.Accepted+counts.Duplicates != len(batch) || note != "" && counts.Accepted > 0 {
				s.sim.Fail(fmt.Errorf("H2: %d events, sent %s, returned %s", len(batch), note, r.body))
			}
			return true
		case err == nil && r.status != http.StatusTooManyRequests && r.status != http.StatusServiceUnavailable:
			s.sim.Fail(fmt.Errorf("a request with events returned %d %s", r.status, r.body))
			return false
		}
		if !s.pause(pause/2 + time.Duration(s.rng.IntN(int(pause)))) {
			return false
		}
	}
}

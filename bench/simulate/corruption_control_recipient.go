package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A controlRecipient is a recipient whose mailbox stays intact while the corruptor damages other mailboxes. It must
// receive each of its events once, in order.
type controlRecipient struct {
	baseClient
	sent     []sentData
	received int // number of sent events that were received and confirmed
}

func newControlRecipient(sim *simulation) *controlRecipient {
	return &controlRecipient{baseClient: sim.newClient("bystander", 304)}
}

// sendEvents sends some events until they are accepted.
func (b *controlRecipient) sendEvents() error {
	batch := make([]sentData, 1+b.rng.IntN(4))
	for i := range batch {
		batch[i] = sentData{
			ID: b.newID().String(), Recipient: b.who, Origin: domain.Aggregations.String(), ContentType: "type-a", DocumentType: "RSM012",
			SupportsBundling: true, Weight: 1,
		}
	}
	b.sent = append(b.sent, batch...)
	_, err := b.callUntil(http.MethodPost, "/v1/data-available", encodeEvents(batch), http.StatusAccepted)
	return err
}

// fetchAll fetches and dequeues all events that were sent.
func (b *controlRecipient) fetchAll() error {
	for b.received < len(b.sent) {
		r, err := b.callUntil(http.MethodGet, "/v1/peek", nil, http.StatusOK)
		if err != nil || r == nil {
			return err
		}
		if err := b.checkBundle(r.body); err != nil {
			return err
		}
		id := r.header["MessageId"][0] //nolint:staticcheck // the spelling of the original hub
		if _, err := b.callUntil(http.MethodDelete, "/v1/dequeue/"+id, nil, http.StatusOK, http.StatusNotFound); err != nil {
			return err
		}
	}
	return nil
}

// checkBundle compares the events in a bundle with the next sent events.
func (b *controlRecipient) checkBundle(body []byte) error {
	var lines []struct{ ID string }
	if err := json.Unmarshal(body, &lines); err != nil {
		return fmt.Errorf("%s, whose mailbox is intact, received %q", b.who, body)
	}
	for _, line := range lines {
		if b.received >= len(b.sent) || b.sent[b.received].ID != line.ID {
			return fmt.Errorf("%s received event %s instead of event number %d of the events sent to it", b.who, line.ID, b.received+1)
		}
		b.received++
	}
	return nil
}

// callUntil repeats a request until the response has one of the statuses. It returns a nil reply if the simulation
// ends.
func (b *controlRecipient) callUntil(method, path string, body []byte, statuses ...int) (*hubReply, error) {
	const patience = 10 * time.Minute
	header := []string{"X-Actor-Id", b.who}
	if body != nil {
		header = append(header, "Content-Type", "application/json")
	}
	for began := time.Now(); ; {
		r, err := b.call(b.sim.ctx, method, path, body, header...)
		switch {
		case b.sim.ctx.Err() != nil:
			return nil, nil //nolint:nilerr // the end of the simulation is no failure
		case err == nil && slices.Contains(statuses, r.status):
			return r, nil
		case err == nil && r.status == http.StatusInternalServerError:
			return nil, fmt.Errorf("%s, whose mailbox is intact, returned %d %s", b.who, r.status, r.body)
		case time.Since(began) > patience:
			return nil, errors.Join(fmt.Errorf("no response to %s %s of %s had a status of %v within %s", method, path, b.who, statuses, patience), err)
		}
		b.pause(time.Second)
	}
}

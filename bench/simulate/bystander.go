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

// A bystander is a recipient whose mailbox nobody damages, beside those that a vandal
// is at. It has no trouble of it: all that is sent to it comes, once and in order.
type bystander struct {
	party
	sent []event
	came int // of these, so many have come and were confirmed
}

func newBystander(w *world) *bystander {
	return &bystander{party: w.newParty("bystander", 304)}
}

// sends some events, and sends them again until they are taken.
func (b *bystander) sends() error {
	batch := make([]event, 1+b.d.n(4))
	for i := range batch {
		batch[i] = event{
			ID: b.newID().String(), Recipient: b.who, Origin: domain.Aggregations.String(), ContentType: "type-a", DocumentType: "RSM012",
			SupportsBundling: true, Weight: 1,
		}
	}
	b.sent = append(b.sent, batch...)
	_, err := b.insists(http.MethodPost, "/v1/data-available", eventsJSON(batch), http.StatusAccepted)
	return err
}

// fetches all that was sent.
func (b *bystander) fetches() error {
	for b.came < len(b.sent) {
		r, err := b.insists(http.MethodGet, "/v1/peek", nil, http.StatusOK)
		if err != nil || r == nil {
			return err
		}
		if err := b.takes(r.body); err != nil {
			return err
		}
		id := r.header["MessageId"][0] //nolint:staticcheck // as the original spells it
		if _, err := b.insists(http.MethodDelete, "/v1/dequeue/"+id, nil, http.StatusOK, http.StatusNotFound); err != nil {
			return err
		}
	}
	return nil
}

// takes holds a bundle to what is to come next.
func (b *bystander) takes(body []byte) error {
	var lines []struct{ ID string }
	if err := json.Unmarshal(body, &lines); err != nil {
		return fmt.Errorf("%s, whose mailbox is as it should be, got %q", b.who, body)
	}
	for _, line := range lines {
		if b.came >= len(b.sent) || b.sent[b.came].ID != line.ID {
			return fmt.Errorf("%s got event %s as number %d of those it was sent", b.who, line.ID, b.came+1)
		}
		b.came++
	}
	return nil
}

// insists on an answer with one of these statuses, nil once the world ends.
func (b *bystander) insists(method, path string, body []byte, statuses ...int) (*reply, error) {
	const patience = 10 * time.Minute
	header := []string{"X-Actor-Id", b.who}
	if body != nil {
		header = append(header, "Content-Type", "application/json")
	}
	for began := time.Now(); ; {
		r, err := b.call(b.w.ctx, method, path, body, header...)
		switch {
		case b.w.ctx.Err() != nil:
			return nil, nil //nolint:nilerr // the world has ended, and that is no fault
		case err == nil && slices.Contains(statuses, r.status):
			return r, nil
		case err == nil && r.status == http.StatusInternalServerError:
			return nil, fmt.Errorf("%s, whose mailbox is as it should be, was answered %d %s", b.who, r.status, r.body)
		case time.Since(began) > patience:
			return nil, errors.Join(fmt.Errorf("%s %s of %s was not answered with %v in %s", method, path, b.who, statuses, patience), err)
		}
		b.pause(time.Second)
	}
}

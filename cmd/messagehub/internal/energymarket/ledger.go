package energymarket

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/messagehub/messagehub/bench/ledger"
)

// A Ledger records the events that a market sent, and the bundles that its
// actors received.
type Ledger struct{ *ledger.Ledger }

// NewLedger returns an empty Ledger.
func NewLedger() Ledger { return Ledger{ledger.New(ledger.Options{})} }

// SendEvent records an event before it is sent.
func (l Ledger) SendEvent(sender int, e *Event) {
	l.Send(ledger.Event{Recipient: e.Recipient, ID: e.ID, Cabinet: e.Cabinet(), Sender: sender, Content: ledger.DigestOf(e.Payload)})
}

// ReceiveBundle records a bundle that an actor received in response to a Peek,
// which began at start. It fails if the body is malformed, or contains events
// that were not sent to the actor.
func (l Ledger) ReceiveBundle(actor, id string, body []byte, start ledger.Moment) error {
	_, err := l.Receive(actor, id, body, start, func() ([]ledger.Element, error) { return readBundle(actor, body) })
	return err
}

// Size returns the number of events in an actor's bundle.
func (l Ledger) Size(actor, id string) int { return len(l.Bundle(actor, id).Elements) }

// readBundle returns the events in the body of a bundle, which is a JSON array.
// In a manifest, each element has the id of its event; otherwise each element
// is a payload, which contains the id.
func readBundle(actor string, body []byte) ([]ledger.Element, error) {
	var texts []json.RawMessage
	if err := json.Unmarshal(body, &texts); err != nil {
		return nil, fmt.Errorf("its body is not JSON: %w", err)
	}
	all := make([]ledger.Element, len(texts))
	for i, text := range texts {
		var e struct {
			ID        string          `json:"id"`
			Recipient string          `json:"recipient"`
			Sequence  int64           `json:"sequence"`
			Payload   json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		if e.ID == "" {
			e.ID, e.Recipient, e.Payload = documentID(text), actor, text
		}
		if e.Recipient != actor {
			return nil, fmt.Errorf("event %q was never sent to this actor", e.ID)
		}
		all[i] = ledger.Element{ID: e.ID, Sequence: e.Sequence, Content: ledger.DigestOf(e.Payload)}
	}
	return all, nil
}

// documentID returns the mRID of a market document.
func documentID(document []byte) string {
	_, rest, _ := bytes.Cut(document, []byte(`_MarketDocument":{"mRID":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(id)
}

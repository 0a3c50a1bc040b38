package domainclient

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// An Event announces that data is available for a recipient.
type Event struct {
	ID               uuid.UUID // id of the data, the same each time the event is sent
	Recipient        string    // the actor: a GUID, a GLN, or another id that the hub knows
	Origin           string    // origin of the event; "" means the origin of the Client
	ContentType      string    // only events of the same content type share a bundle
	DocumentType     string    // name of the data for the recipient; "" means the content type
	SupportsBundling bool      // if false, the event is alone in its bundle
	Weight           int64     // size of the data in KB, at least 1

	// Payload is the data itself, if the event contains the data. It requires Form JSON.
	Payload json.RawMessage

	// TraceParent and TraceState are the W3C Trace Context of the operation that caused the event.
	// They are "" if that operation is not traced. A message with several events uses the trace
	// context of the first event.
	TraceParent, TraceState string
}

// A Form is the encoding of events in messages.
type Form int

// The forms.
const (
	Protobuf Form = iota // the format of the original contract, one event per message
	JSON                 // the format of the hub's HTTP API, one or more events per message
)

// messageBytes is the size limit of a message with several events. It is below the 256 KB that a
// namespace of the tier Standard accepts.
const messageBytes = 200 << 10

// An outgoingMessage is a message with one or more events of one recipient.
type outgoingMessage struct {
	events int
	sent   *azservicebus.Message
}

// recipientMessages contains the messages to one recipient, in order.
type recipientMessages struct {
	recipient string
	messages  []outgoingMessage
}

// encodeEvents encodes events into messages. It keeps the order of the events of each recipient.
func (c *Client) encodeEvents(events []Event) ([]recipientMessages, error) {
	var byRecipient []recipientMessages
	number := make(map[string]int) // maps a recipient to the index of its messages in the result
	grouped := make([][]*Event, 0)
	for i := range events {
		e := events[i]
		if err := c.completeEvent(&e); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", i, e.ID, err)
		}
		n, ok := number[e.Recipient]
		if !ok {
			n = len(byRecipient)
			number[e.Recipient] = n
			byRecipient, grouped = append(byRecipient, recipientMessages{recipient: e.Recipient}), append(grouped, nil)
		}
		grouped[n] = append(grouped[n], &e)
	}
	for n := range byRecipient {
		var err error
		if byRecipient[n].messages, err = c.writeMessages(byRecipient[n].recipient, grouped[n]); err != nil {
			return nil, err
		}
	}
	return byRecipient, nil
}

// completeEvent sets the optional fields that an event omits. It returns an error for an event that
// every hub rejects, whatever its settings.
func (c *Client) completeEvent(e *Event) error {
	e.Origin = cmp.Or(e.Origin, c.o.Origin)
	e.DocumentType = cmp.Or(e.DocumentType, e.ContentType)
	switch {
	case e.ID == uuid.Nil:
		return errors.New("no ID; give every event its own, and keep it when the event is sent again")
	case e.Recipient == "":
		return errors.New("no Recipient")
	case e.Origin == "":
		return errors.New("no Origin, neither of the event nor of the client")
	case e.ContentType == "":
		return errors.New("no ContentType")
	case e.Weight < 1:
		return fmt.Errorf("weight: want at least 1 (KB), got %d", e.Weight)
	case c.o.Form == Protobuf && e.Weight > math.MaxInt32:
		return fmt.Errorf("weight: protobuf carries at most %d, got %d", math.MaxInt32, e.Weight)
	case c.o.Form == Protobuf && e.Payload != nil:
		return errors.New("protobuf carries no Payload; set Options.Form to JSON")
	}
	return nil
}

// writeMessages encodes the events of one recipient into messages.
func (c *Client) writeMessages(recipient string, events []*Event) ([]outgoingMessage, error) {
	if c.o.Form == JSON {
		return c.writeJSON(recipient, events)
	}
	var messages []outgoingMessage
	for _, e := range events {
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(&contract.DataAvailableNotificationContract{
			UUID: e.ID.String(), Recipient: e.Recipient, MessageType: e.ContentType, Origin: contract.WireOrigin(e.Origin),
			SupportsBundling: e.SupportsBundling, RelativeWeight: int32(e.Weight), DocumentType: e.DocumentType, //nolint:gosec // completeEvent has checked it
		})
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		m, err := c.newAnnouncement(recipient, contract.Protobuf, body)
		if err != nil {
			return nil, err
		}
		setTrace(m, e)
		messages = append(messages, outgoingMessage{1, m})
	}
	return messages, nil
}

// writeJSON encodes the events of one recipient into JSON messages. Each message contains as many
// events as messageBytes and EventsPerMessage allow.
func (c *Client) writeJSON(recipient string, events []*Event) ([]outgoingMessage, error) {
	var messages []outgoingMessage
	var texts [][]byte
	var first *Event
	size := 0
	flush := func() error {
		if len(texts) == 0 {
			return nil
		}
		m, err := c.newAnnouncement(recipient, contract.JSON, slices.Concat([]byte{'['}, bytes.Join(texts, []byte{','}), []byte{']'}))
		setTrace(m, first)
		messages = append(messages, outgoingMessage{len(texts), m})
		texts, size = nil, 0
		return err
	}
	for _, e := range events {
		text, err := e.encodeJSON()
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		if len(texts) == c.o.EventsPerMessage || size+len(text) > messageBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		if len(texts) == 0 {
			first = e
		}
		texts = append(texts, text)
		size += len(text) + 1
	}
	return messages, flush()
}

// encodeJSON returns the event in the JSON format that the hub reads.
func (e *Event) encodeJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		ID               string          `json:"id"`
		Recipient        string          `json:"recipient"`
		Origin           string          `json:"origin"`
		ContentType      string          `json:"contentType"`
		DocumentType     string          `json:"documentType"`
		SupportsBundling bool            `json:"supportsBundling"`
		Weight           int64           `json:"weight"`
		Payload          json.RawMessage `json:"payload,omitempty"`
	}{e.ID.String(), e.Recipient, e.Origin, e.ContentType, e.DocumentType, e.SupportsBundling, e.Weight, e.Payload})
	return bytes.TrimSpace(b.Bytes()), err
}

// newAnnouncement returns a message with a body. The message id is a hash of the recipient and the
// content, so the bus detects a message that is sent twice. If the content of an event changes, the
// message id changes too, and the hub receives the message and rejects it with a reason.
func (c *Client) newAnnouncement(recipient, contentType string, body []byte) (*azservicebus.Message, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%q %q ", recipient, contentType)
	digest.Write(body)
	id := hex.EncodeToString(digest.Sum(nil)[:16])
	random, err := c.newID()
	return &azservicebus.Message{
		MessageID: &id, SessionID: &recipient, ContentType: &contentType, Body: body,
		ApplicationProperties: contract.Properties(contract.DataAvailable, id, c.o.Now(), random),
	}, err
}

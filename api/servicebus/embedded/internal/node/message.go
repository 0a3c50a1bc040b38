package node

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	client "github.com/Azure/go-amqp"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

// The message annotations of Service Bus, each with the AMQP type that clients require.
const (
	sequenceNumber         amqp.Symbol = "x-opt-sequence-number"         // long
	enqueuedSequenceNumber amqp.Symbol = "x-opt-enqueue-sequence-number" // long
	enqueuedTime           amqp.Symbol = "x-opt-enqueued-time"           // timestamp
	scheduledTime          amqp.Symbol = "x-opt-scheduled-enqueue-time"  // timestamp
	lockedUntil            amqp.Symbol = "x-opt-locked-until"            // timestamp
	partitionKey           amqp.Symbol = "x-opt-partition-key"           // string
	deadLetterSource       amqp.Symbol = "x-opt-deadletter-source"       // string
	messageState           amqp.Symbol = "x-opt-message-state"           // int
	lockToken              amqp.Symbol = "x-opt-lock-token"              //nolint:gosec // a name; uuid, of deliveries
)

// batchFormat is the message format of a batch, in which every data section is a message.
const batchFormat = 0x80013700

// decodeMessage decodes an AMQP message of a client.
func decodeMessage(encoded []byte) (bus.Message, error) {
	s, err := amqp.Split(encoded)
	if err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	h, err := s.ReadHeader()
	if err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	p, err := s.ReadProperties()
	if err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	annotations, err := s.ReadMessageAnnotations()
	if err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	if _, err := s.ReadApplicationProperties(); err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	if _, err := s.ReadDeliveryAnnotations(); err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	m := bus.Message{
		ID: idText(p.MessageID), SessionID: p.GroupID, Subject: p.Subject, To: p.To, ReplyTo: p.ReplyTo,
		ReplyToSessionID: p.ReplyToGroupID, CorrelationID: idText(p.CorrelationID), ContentType: p.ContentType,
		ApplicationProperties: s.ApplicationProperties,
	}
	if err := readAnnotations(&m, annotations); err != nil {
		return bus.Message{}, err
	}
	if err := checkReadable(encoded); err != nil {
		return bus.Message{}, amqp.Errorf(amqp.DecodeError, "the client of Azure for Go could not read the message: %v", err)
	}
	switch {
	case h.TTL != nil:
		m.TTL = time.Duration(*h.TTL) * time.Millisecond
	case p.AbsoluteExpiryTime != nil && p.CreationTime != nil && *p.AbsoluteExpiryTime > *p.CreationTime:
		m.TTL = fromTimestamp(*p.AbsoluteExpiryTime).Sub(fromTimestamp(*p.CreationTime))
	}
	s.ApplicationProperties = nil
	m.Sections = s.Append(make([]byte, 0, len(encoded)-len(m.ApplicationProperties)))
	return m, nil
}

// checkReadable returns an error if Azure's Go client cannot decode a message. That client lacks some AMQP types, such
// as decimals: it ends its link when such a message is delivered. Some map keys make it panic. A queue would be blocked
// by such a message, so the message is refused.
func checkReadable(encoded []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	return new(client.Message).UnmarshalBinary(encoded)
}

// readAnnotations reads the annotations that the sender has set. It refuses values of a wrong type, because receivers
// could not decode them.
func readAnnotations(m *bus.Message, annotations amqp.Map) error {
	for _, e := range annotations {
		fits := true
		switch e.Key {
		case scheduledTime:
			var at amqp.Timestamp
			at, fits = e.Value.(amqp.Timestamp)
			m.ScheduledFor = fromTimestamp(at)
		case partitionKey:
			m.PartitionKey, fits = e.Value.(string)
			fits = fits || e.Value == nil
		}
		if !fits {
			return amqp.Errorf(amqp.InvalidField, "the annotation %v is a %T", e.Key, e.Value)
		}
	}
	return nil
}

// decodeBatch decodes the payload of a transfer.
func decodeBatch(format uint32, payload []byte) ([]bus.Message, error) {
	if format != batchFormat {
		m, err := decodeMessage(payload)
		return []bus.Message{m}, err
	}
	envelope, err := amqp.Split(payload)
	if err != nil {
		return nil, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	bodies, err := envelope.ReadBodies()
	if err != nil {
		return nil, amqp.Errorf(amqp.DecodeError, "%v", err)
	}
	messages := make([]bus.Message, len(bodies))
	for i, body := range bodies {
		encoded, ok := body.([]byte)
		if !ok {
			return nil, amqp.Errorf(amqp.DecodeError, "message %d of a batch is a %T", i, body)
		}
		if messages[i], err = decodeMessage(encoded); err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// idText returns a message id or correlation id as text. The id may be of any AMQP type.
func idText(id any) string {
	switch id := id.(type) {
	case string:
		return id
	case uint64:
		return strconv.FormatUint(id, 10)
	case amqp.UUID:
		return uuid.UUID(id).String()
	case []byte:
		return hex.EncodeToString(id)
	}
	return ""
}

// encodeMessage encodes a message of the bus for a client. If token is zero, the message is not locked.
func encodeMessage(m *bus.Message, token bus.LockToken, until time.Time) ([]byte, error) {
	s, err := amqp.Split(m.Sections)
	if err != nil {
		return nil, fmt.Errorf("message %d is damaged: %w", m.SequenceNumber, err)
	}
	h, err := s.ReadHeader()
	if err != nil {
		return nil, err
	}
	h.DeliveryCount, h.TTL = m.DeliveryCount, nil
	if !m.ExpiresAt.IsZero() {
		ms := uint32(min(max(m.ExpiresAt.Sub(m.EnqueuedAt).Milliseconds(), 0), math.MaxUint32))
		h.TTL = &ms
	}
	s.SetHeader(h)
	if err := ensureProperties(&s, m); err != nil {
		return nil, err
	}
	annotations, err := s.ReadMessageAnnotations()
	if err != nil {
		return nil, err
	}
	s.SetMessageAnnotations(addAnnotations(annotations, m, until))
	if token != (bus.LockToken{}) {
		deliveryAnnotations, err := s.ReadDeliveryAnnotations()
		if err != nil {
			return nil, err
		}
		s.SetDeliveryAnnotations(deliveryAnnotations.Set(lockToken, amqp.UUID(token)))
	}
	s.ApplicationProperties = m.ApplicationProperties
	const room = 256 // room is enough for the annotations that are added
	return s.Append(make([]byte, 0, len(m.Sections)+len(m.ApplicationProperties)+room)), nil
}

// ensureProperties updates the properties section with the message id and the fields that a rule has changed. It adds
// the section if it is missing.
func ensureProperties(s *amqp.Sections, m *bus.Message) error {
	p, err := s.ReadProperties()
	if err != nil {
		return err
	}
	if p.MessageID != nil && !m.Rewritten {
		return nil
	}
	if idText(p.MessageID) != m.ID {
		p.MessageID = m.ID
	}
	if m.Rewritten {
		p.GroupID, p.To, p.Subject, p.ReplyTo, p.ReplyToGroupID, p.ContentType = m.SessionID, m.To, m.Subject, m.ReplyTo, m.ReplyToSessionID, m.ContentType
		if idText(p.CorrelationID) != m.CorrelationID {
			p.CorrelationID = m.CorrelationID
		}
	}
	s.SetProperties(p)
	return nil
}

// addAnnotations adds the annotations of the bus. They replace the sender's annotations of the same name.
func addAnnotations(sent amqp.Map, m *bus.Message, until time.Time) amqp.Map {
	annotations := make(amqp.Map, 0, len(sent)+6)
	for _, e := range sent {
		switch e.Key {
		case sequenceNumber, enqueuedSequenceNumber, enqueuedTime, lockedUntil, deadLetterSource, messageState:
		default:
			annotations = append(annotations, e)
		}
	}
	annotations = append(annotations, amqp.Entry{Key: sequenceNumber, Value: m.SequenceNumber}, amqp.Entry{Key: enqueuedTime, Value: toTimestamp(m.EnqueuedAt)})
	if m.EnqueuedSequenceNumber != 0 {
		annotations = append(annotations, amqp.Entry{Key: enqueuedSequenceNumber, Value: m.EnqueuedSequenceNumber})
	}
	if !until.IsZero() {
		annotations = append(annotations, amqp.Entry{Key: lockedUntil, Value: toTimestamp(until)})
	}
	if m.DeadLetterSource != "" {
		annotations = append(annotations, amqp.Entry{Key: deadLetterSource, Value: m.DeadLetterSource})
	}
	if m.State != bus.Active {
		annotations = append(annotations, amqp.Entry{Key: messageState, Value: int32(m.State)})
	}
	return annotations
}

// deliveryTag returns the lock token in .NET byte order, which is the delivery tag of a locked message.
func deliveryTag(t bus.LockToken) []byte {
	return []byte{t[3], t[2], t[1], t[0], t[5], t[4], t[7], t[6], t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15]}
}

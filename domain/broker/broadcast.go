package broker

import (
	"context"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The limits of the metadata of a message.
const (
	MaxMetadata      = 16      // headers
	MaxMetadataValue = 1 << 10 // bytes
)

// A Broadcast is a message that a producer sends to a channel.
type Broadcast struct {
	ID          string // ID is the id that the producer has chosen, or ""
	Priority    int    // 0 to 9
	ContentType string
	Metadata    map[string]string // Metadata contains headers to send with the message, by canonical name
	Payload     []byte
}

// The attributes in which a stored message contains its producer and its metadata.
const (
	producerAttribute = "producer"
	metadataPrefix    = "header:"
)

// ErrOtherContent reports that a different message with the same id was sent before. Its kind is Conflict.
var ErrOtherContent = domain.Errorf(domain.Conflict, "a message with this id was sent before, with other content")

// Broadcast stores a message. It returns the id of the message and when it was stored, or a zero time if the message
// was sent before. After Broadcast has returned, every consumer of the channel gets the message. Broadcast fails with
// [ErrUnauthenticated], [ErrForbidden], [ErrOtherContent], or Invalid if the message is not valid. After any other
// error, the message may be stored.
func (s *Service) Broadcast(ctx context.Context, creds *Credentials, channel domain.PartyID, b *Broadcast) (id string, stored time.Time, err error) {
	producer, err := s.requireProducer(ctx, creds, channel)
	if err != nil {
		return "", time.Time{}, err
	}
	if _, isOurs := domain.ParseMessageID(b.ID); isOurs {
		return "", time.Time{}, domain.Errorf(domain.Invalid, "message id: want one other than %s, which has the form of ids that the broker assigns", b.ID)
	}
	m := domain.Message{
		ID: b.ID, Priority: b.Priority, ContentType: b.ContentType, Payload: b.Payload,
		Attributes: map[string]string{producerAttribute: producer.String()},
	}
	if n := len(b.Metadata); n > MaxMetadata {
		return "", time.Time{}, domain.Errorf(domain.Invalid, "metadata: want at most %d headers, got %d", MaxMetadata, n)
	}
	if err := s.opts.CheckHeaders(b.Metadata); err != nil {
		return "", time.Time{}, err
	}
	for name, value := range b.Metadata {
		if n := len(value); n > MaxMetadataValue {
			return "", time.Time{}, domain.Errorf(domain.Invalid, "metadata: want at most %d bytes in header %s, got %d", MaxMetadataValue, name, n)
		}
		m.Attributes[metadataPrefix+name] = value
	}
	if err := m.Check(); err != nil {
		return "", time.Time{}, err
	}
	messages := []domain.Message{m}
	appended, err := s.ports.Streams.Append(ctx, channel.Stream(), messages)
	if err != nil {
		return "", time.Time{}, err
	}
	if appended[0].Outcome == repository.AppendConflict {
		return "", time.Time{}, ErrOtherContent
	}
	s.opts.Published(channel.Stream(), messages, appended)
	return appended[0].Position.MessageID(), appended[0].Published, nil
}

// MetadataOf returns the headers to send with a stored message.
func MetadataOf(m *domain.Message) map[string]string {
	headers := make(map[string]string)
	for name, value := range m.Attributes {
		if header, isHeader := strings.CutPrefix(name, metadataPrefix); isHeader {
			headers[header] = value
		}
	}
	return headers
}

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
	ID          string // id that the producer has chosen; "": no id
	Priority    int    // 0 to 9
	ContentType string
	Metadata    map[string]string // headers that are sent along, by their canonical names
	Payload     []byte
}

// The attributes of a message of a channel.
const (
	producerAttribute = "producer"
	metadataPrefix    = "header:"
)

// ErrOtherContent reports that a message with the same id and other content was sent before. Its
// kind is Conflict.
var ErrOtherContent = domain.Errorf(domain.Conflict, "a message with this id was sent before, with other content")

// Broadcast stores a message and returns its id and the time when it was stored. The time is
// zero if the message was sent before. Once Broadcast has returned, each consumer of the
// channel gets the message. It fails with [ErrUnauthenticated], [ErrForbidden] and
// [ErrOtherContent], and with Invalid if the message is not valid. After another failure the
// message may have been stored.
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

// MetadataOf returns the headers that are sent along with a message of a channel.
func MetadataOf(m *domain.Message) map[string]string {
	headers := make(map[string]string)
	for name, value := range m.Attributes {
		if header, isHeader := strings.CutPrefix(name, metadataPrefix); isHeader {
			headers[header] = value
		}
	}
	return headers
}

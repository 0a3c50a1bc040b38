package deadletterqueue

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
)

// Peek implements deadletters.Bus. If Microsoft's client cannot decode a dead letter, the page ends
// before it. If that dead letter would be the first of the page, Peek fails with Damaged.
func (b *Bus) Peek(ctx context.Context, queue string, after int64, limit int) ([]deadletters.DeadLetter, error) {
	found, err := b.peekMessages(ctx, queue, after, limit)
	letters := make([]deadletters.DeadLetter, 0, len(found))
	for _, m := range found {
		letters = append(letters, deadLetterOf(m))
	}
	return letters, err
}

func (b *Bus) peekMessages(ctx context.Context, queue string, after int64, limit int) (found []*azservicebus.ReceivedMessage, err error) {
	var unreadable error
	err = b.withReceiver(ctx, queue, func(r *azservicebus.Receiver) error {
		found, err = peek(ctx, r, after, limit)
		if busclient.IsPanic(err) && limit > 1 {
			unreadable, err = err, nil
		}
		return err
	})
	for unreadable != nil && err == nil && len(found) < limit {
		err = b.withReceiver(ctx, queue, func(r *azservicebus.Receiver) error {
			one, err := peek(ctx, r, after, 1)
			if len(one) == 0 {
				if busclient.IsPanic(err) && len(found) > 0 {
					err = nil // the next page starts with the undecodable dead letter
				}
				unreadable = nil
				return err
			}
			found, after = append(found, one...), numberOf(one[0])
			return nil
		})
	}
	if domain.KindOf(err) == domain.Damaged {
		return nil, domain.Errorf(domain.Damaged, "the first dead letter after %d cannot be read; list the later ones with a higher number in after, and remove this one with a tool of Service Bus: %w", after, err)
	}
	return found, err
}

// peek returns up to limit dead letters with sequence numbers above after.
func peek(ctx context.Context, r *azservicebus.Receiver, after int64, limit int) (found []*azservicebus.ReceivedMessage, err error) {
	from := after + 1
	err = callClient(ctx, func(ctx context.Context) (err error) {
		found, err = r.PeekMessages(ctx, limit, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &from})
		return err
	})
	return found, err
}

// Read implements deadletters.Bus.
func (b *Bus) Read(ctx context.Context, queue string, number int64) (*deadletters.Content, error) {
	found, err := b.peekMessages(ctx, queue, number-1, 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || numberOf(found[0]) != number {
		return nil, domain.Errorf(domain.NotFound, "queue %s has no dead letter with the sequence number %d", queue, number)
	}
	m := found[0]
	c := &deadletters.Content{DeadLetter: deadLetterOf(m), Properties: make(map[string]string)}
	for _, part := range bodyOf(m) {
		room := deadletters.MaxBody - len(c.Body)
		c.Body = append(c.Body, part[:min(len(part), room)]...)
	}
	c.IsCut = c.Size > int64(len(c.Body))
	for name, value := range m.ApplicationProperties {
		if len(c.Properties) < maxProperties {
			c.Properties[cutText(name)] = cutText(textOf(value))
		}
	}
	return c, nil
}

// Limits of the properties that Peek and Read return.
const (
	maxProperties = 100
	maxProperty   = 4 << 10 // bytes
)

// cutText returns text, truncated to maxProperty bytes.
func cutText(text string) string {
	if len(text) <= maxProperty {
		return text
	}
	end := maxProperty
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

func textOf(value any) string {
	if at, ok := value.(time.Time); ok {
		return at.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}

// bodyOf returns the data sections of a message. Microsoft's client sets Body only if a message has
// exactly one section.
func bodyOf(m *azservicebus.ReceivedMessage) [][]byte {
	if m.RawAMQPMessage == nil {
		return [][]byte{m.Body}
	}
	return m.RawAMQPMessage.Body.Data
}

func sizeOf(m *azservicebus.ReceivedMessage) (size int64) {
	for _, part := range bodyOf(m) {
		size += int64(len(part))
	}
	return size
}

func numberOf(m *azservicebus.ReceivedMessage) int64 { return valueOf(m.SequenceNumber) }

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func deadLetterOf(m *azservicebus.ReceivedMessage) deadletters.DeadLetter {
	return deadletters.DeadLetter{
		Number: numberOf(m), MessageID: formerID(m), Session: m.SessionID, EnqueuedAt: valueOf(m.EnqueuedTime),
		Reason: valueOf(m.DeadLetterReason), Description: valueOf(m.DeadLetterErrorDescription),
		DeliveryCount: int(m.DeliveryCount), Size: sizeOf(m), ContentType: valueOf(m.ContentType), Subject: valueOf(m.Subject),
		ResentBy: propertyOf(m, contract.PropertyResentBy),
	}
}

// propertyOf returns an application property as text. It returns "" if the property is missing or
// not a string.
func propertyOf(m *azservicebus.ReceivedMessage, name string) string {
	text, _ := m.ApplicationProperties[name].(string)
	return text
}

// formerID returns the message id that the original sender set, even if the message was sent again.
func formerID(m *azservicebus.ReceivedMessage) string {
	return contract.FormerMessageID(m.MessageID, m.ApplicationProperties)
}

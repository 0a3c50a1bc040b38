package deadletterqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/domain"
)

// Resend implements deadletters.Bus.
func (b *Bus) Resend(ctx context.Context, queue string, numbers []int64, operator string) (resent int, err error) {
	return b.executeOrder(ctx, queue, numbers, func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
		return b.resend(ctx, queue, r, m, operator)
	})
}

// Delete implements deadletters.Bus.
func (b *Bus) Delete(ctx context.Context, queue string, numbers []int64) (deleted int, err error) {
	return b.executeOrder(ctx, queue, numbers, func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
		return b.remove(ctx, queue, r, m)
	})
}

// resend sends a copy of a dead letter that r has locked, and then deletes the dead letter. After a
// crash between these steps, the copy and the dead letter exist.
func (b *Bus) resend(ctx context.Context, queue string, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage, operator string) error {
	if err := b.send(ctx, queue, b.copyOf(m, operator)); err != nil {
		b.abandon(ctx, r, m)
		return err
	}
	if err := b.remove(ctx, queue, r, m); err != nil {
		return domain.Errorf(domain.Uncertain, "a copy of dead letter %d of queue %s was sent, and the dead letter may still exist; delete it if a list shows it: %w", numberOf(m), queue, err)
	}
	return nil
}

// send sends m, a copy of a dead letter, to a queue.
func (b *Bus) send(ctx context.Context, queue string, m *azservicebus.AMQPAnnotatedMessage) error {
	isSending := false
	err := callClient(ctx, func(ctx context.Context) error {
		return b.bus.WithSender(ctx, queue, func(s *azservicebus.Sender) error {
			isSending = true
			return s.SendAMQPAnnotatedMessage(ctx, m, nil)
		})
	})
	if failed, ok := errors.AsType[*callError](err); ok && isSending && failed.failure.Retry && !failed.failure.RetryOnce {
		return domain.Errorf(domain.Uncertain, "the bus has not confirmed whether it accepts the copy of the dead letter, which still exists: %w", err)
	}
	if failed, ok := errors.AsType[*callError](err); ok && failed.failure.Reason == busclient.Unauthorized {
		return domain.Errorf(domain.Conflict, "the hub may not send to queue %s; grant it the role Azure Service Bus Data Sender there, or have the sender send the message again: %w", queue, err)
	}
	return asDomainError(queue, err)
}

// remove deletes a dead letter that r has locked. If the bus does not reply, remove peeks at the
// queue to find out whether the dead letter was deleted.
func (b *Bus) remove(ctx context.Context, queue string, r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
	err := callClient(ctx, func(ctx context.Context) error { return r.CompleteMessage(ctx, m, nil) })
	if err == nil {
		return nil
	}
	if isThere, lookErr := b.isThere(ctx, queue, numberOf(m)); lookErr == nil && !isThere {
		return nil
	}
	return asDomainError(queue, err)
}

// isThere reports whether a dead letter exists, locked or not.
func (b *Bus) isThere(ctx context.Context, queue string, number int64) (isThere bool, err error) {
	err = b.withReceiver(context.WithoutCancel(ctx), queue, func(r *azservicebus.Receiver) error {
		found, err := peek(ctx, r, number-1, 1)
		isThere = len(found) > 0 && numberOf(found[0]) == number
		return err
	})
	return isThere, err
}

// copyOf returns the copy of a dead letter that operator sends to the queue.
func (b *Bus) copyOf(m *azservicebus.ReceivedMessage, operator string) *azservicebus.AMQPAnnotatedMessage {
	properties := maps.Clone(m.ApplicationProperties)
	if properties == nil {
		properties = make(map[string]any)
	}
	delete(properties, propertyReason)
	delete(properties, propertyDescription)
	former := formerID(m)
	properties[contract.PropertyResentBy] = operator
	properties[contract.PropertyResentAt] = b.opts.Clock().UTC().Format("2006-01-02T15:04:05Z")
	properties[contract.PropertyFormerMessageID] = former

	id := copyID(numberOf(m), former)
	message := &azservicebus.AMQPAnnotatedMessage{
		ApplicationProperties: properties,
		MessageAnnotations:    make(map[any]any),
		Properties:            &azservicebus.AMQPAnnotatedMessageProperties{MessageID: id},
	}
	raw := m.RawAMQPMessage
	message.Body, message.Footer = raw.Body, raw.Footer
	if p := raw.Properties; p != nil { // the copy omits the properties that describe the expiry
		message.Properties = &azservicebus.AMQPAnnotatedMessageProperties{
			MessageID: id, ContentEncoding: p.ContentEncoding, ContentType: p.ContentType, CorrelationID: p.CorrelationID,
			GroupID: p.GroupID, GroupSequence: p.GroupSequence, ReplyTo: p.ReplyTo, ReplyToGroupID: p.ReplyToGroupID,
			Subject: p.Subject, To: p.To, UserID: p.UserID,
		}
	}
	for name, value := range raw.MessageAnnotations { // the copy has only the annotations of the sender
		if text, ok := name.(string); !ok || text == partitionKey || !strings.HasPrefix(text, busAnnotation) {
			message.MessageAnnotations[name] = value
		}
	}
	return message
}

// Names that Service Bus defines.
const (
	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
	busAnnotation       = "x-opt-"              // prefix of the annotations that the bus sets
	partitionKey        = "x-opt-partition-key" // set by the sender, although it starts with the prefix of the bus
)

// copyID returns the message id for copies of a dead letter. All copies of one dead letter have the
// same id, which differs from the ids of all other messages. It is shorter than the limit of 128
// characters.
func copyID(number int64, former string) string {
	sum := sha256.Sum256([]byte(former))
	return "resent-" + strconv.FormatInt(number, 10) + "-" + hex.EncodeToString(sum[:8])
}

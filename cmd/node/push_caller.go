package node

import (
	"context"
	"io"
	"time"

	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/repository"
)

// An httpCaller calls receivers over HTTP.
type httpCaller struct {
	client      *webhook.Client
	content     repository.Content // store of large payloads
	clock       func() time.Time
	tokenHeader string // header of calls to consumers that contains the token
	tracer      *tracing.Tracer
}

// Call implements [delivery.Caller].
func (c *httpCaller) Call(ctx context.Context, call delivery.Call) (answer domain.Answer) {
	message := call.Entry.Message
	ctx, span := c.startSpan(ctx, &call)
	defer func() { endSpan(span, &answer) }()
	if !call.Entry.PayloadAt.IsZero() {
		var err error
		if message.Payload, err = readPayload(ctx, c.content, call.Entry.PayloadAt); err != nil {
			return unreadAnswer(err)
		}
	}
	if to, isConsumer := call.Receiver.Target.(*broker.ConsumerCall); isConsumer {
		return c.callConsumer(ctx, to, &call, &message)
	}
	if to, isWatch := call.Receiver.Target.(*watcher); isWatch {
		return c.callWatch(ctx, to, &call)
	}
	t := targetOf(call.Receiver)
	id := webhook.DeliveryID(call.Cursor, t.stream, call.Entry.Position.EntryID, call.Entry.Published)
	return c.sendMessage(ctx, call.Receiver, &message, id, call.Attempt).Answer
}

// Test implements [inspect.Caller].
func (c *httpCaller) Test(ctx context.Context, r *delivery.Receiver, m *domain.Message) (domain.Answer, []byte) {
	result := c.sendMessage(ctx, r, m, "msg_"+m.Attributes["id"], 0)
	return result.Answer, result.Body
}

// sendMessage calls a receiver with a message. attempts is the number of
// earlier, failed attempts.
func (c *httpCaller) sendMessage(ctx context.Context, r *delivery.Receiver, m *domain.Message, id string, attempts int) webhook.Result {
	t := targetOf(r)
	var attachments []byte
	if len(t.attachments) > 0 { // without attachments, the payload is not parsed
		attachments = t.attachments.Evaluate(filter.MetadataOf(m))
	}
	secrets, key := t.signersAt(c.clock())
	result, err := c.client.Send(ctx, &webhook.Delivery{
		ID: id, Attempts: attempts, Subscription: t.subscription, Settings: &r.Subscription,
		Message: m, Attachments: attachments, Headers: t.headers,
		Secrets: secrets, HMACKey: key,
	})
	if err != nil {
		return timeoutResult()
	}
	return result
}

// timeoutResult returns the result of a call that the engine cancelled. Its
// error names the time limit, because the engine ignores the results of calls
// that it cancelled for other reasons.
func timeoutResult() webhook.Result {
	return webhook.Result{Answer: domain.Answer{Error: "the time for a call has passed"}}
}

// targetOf returns the target of a receiver. It panics if newReceivers did not
// create the receiver.
func targetOf(r *delivery.Receiver) *target {
	t, ok := r.Target.(*target)
	if !ok {
		panic("the receiver is not one of the node")
	}
	return t
}

// unreadAnswer returns the result of a call that was not made because the
// payload could not be read. Its error names no object and no host, because the
// receiver's owner can read it.
func unreadAnswer(err error) domain.Answer {
	kind := domain.KindOf(err)
	if kind == domain.NotFound {
		return domain.Answer{Lost: true, Error: "the payload of the message is gone from the content store"}
	}
	if kind == domain.Damaged {
		return domain.Answer{Lost: true, Error: "the payload of the message is damaged in the content store"}
	}
	return domain.Answer{Unread: true, Error: "the hub could not read the payload of the message; it tries again"}
}

// readPayload reads a large payload from the content store, and checks its
// checksum.
func readPayload(ctx context.Context, content repository.Content, at repository.Section) (payload []byte, err error) {
	r, err := content.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	payload, err = io.ReadAll(io.LimitReader(r, domain.MaxPayload+1))
	if err == nil && (int64(len(payload)) != at.Length || repository.SumOf(payload) != at.Sum) {
		err = domain.Errorf(domain.Damaged, "object %s does not have the payload that was stored", at.Object)
	}
	return payload, err
}

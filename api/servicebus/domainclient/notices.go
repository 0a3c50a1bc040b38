package domainclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contract"
)

// A Notice reports that an actor has confirmed a bundle.
type Notice struct {
	ID        string // IdempotencyID of the bundle; it does not change if the notice is delivered again
	Recipient string // the actor
	List      string // name of the blob that lists the ids of the events

	// TraceParent and TraceState are the W3C Trace Context of the Peek that opened the bundle. Both
	// are "" if the trace context is unknown.
	TraceParent, TraceState string

	exchange contentContainer
}

// EventIDs returns the ids of the events of the bundle, in order.
func (n *Notice) EventIDs(ctx context.Context) ([]uuid.UUID, error) {
	return n.exchange.readIDs(ctx, n.List)
}

// Notices calls h with one notice after another until ctx ends, and then returns nil. A notice is
// completed when h returns nil. After an error or a panic of h, Notices pauses and calls h with the
// same notice again, before any later notice. If h can never process a notice, it should log the
// notice and return nil.
//
// A notice may be delivered twice, even after a long time. See [Notice.ID].
func (c *Client) Notices(ctx context.Context, h func(ctx context.Context, n *Notice) error) (err error) {
	if c.o.Queues.Dequeue == "" {
		return errNoQueues
	}
	client, err := c.o.Connect()
	if err != nil {
		return err
	}
	defer closeClient(ctx, client, &err)
	l := &noticeLoop{c: c, handler: h, client: client}
	p := c.newPatience()
	for ctx.Err() == nil {
		err := l.drainQueue(ctx, &p)
		if ctx.Err() == nil && p.endsWith(err) {
			return fmt.Errorf("notices from %s: %w", c.o.Queues.Dequeue, err)
		}
		if err != nil && p.wait(ctx) {
			c.o.Logger.Warn("trying again", "doing", "notices from "+c.o.Queues.Dequeue, "error", err)
		}
	}
	return nil
}

// A noticeLoop is the state of one call to Notices.
type noticeLoop struct {
	c       *Client
	handler func(ctx context.Context, n *Notice) error
	client  *azservicebus.Client
}

// drainQueue receives notices with a new receiver until the receiver fails.
func (l *noticeLoop) drainQueue(ctx context.Context, p *patience) error {
	from, err := l.client.NewReceiverForQueue(l.c.o.Queues.Dequeue, nil)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := closingContext(ctx)
		defer cancel()
		_ = from.Close(closing) // if closing fails, the locks expire
	}()
	for {
		m, err := receiveNext(ctx, from)
		if err != nil {
			return err
		}
		if m == nil {
			if !p.wait(ctx) {
				return ctx.Err()
			}
			continue
		}
		*p = l.c.newPatience()
		if err := l.handleNotice(ctx, from, m); err != nil {
			return err
		}
	}
}

// handleNotice calls the handler with one notice until the handler returns nil. It renews the lock
// of the notice during the pauses, so that retries do not count as deliveries.
func (l *noticeLoop) handleNotice(ctx context.Context, from *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
	n, err := l.c.parseNotice(m)
	if err != nil {
		return l.c.deadLetter(ctx, from, m, err)
	}
	var until time.Time
	if m.LockedUntil != nil {
		until = *m.LockedUntil
	}
	holding, release := l.c.keepLock(ctx, until, func(ctx context.Context) error { return from.RenewMessageLock(ctx, m, nil) })
	defer release()
	p := l.c.newPatience()
	for {
		err := recoverPanic(func() error { return l.handler(holding, n) })
		if err == nil {
			break
		}
		if holding.Err() != nil {
			return nil // the lock is lost, so the bus delivers the notice again
		}
		l.c.o.Logger.Error("a notice was not handled; it is delivered again", "id", n.ID, "error", err)
		if !p.wait(holding) {
			return nil
		}
	}
	settling, cancel := closingContext(ctx)
	defer cancel()
	return from.CompleteMessage(settling, m, nil) // without completion, the bus would deliver the notice again
}

// parseNotice returns the notice in a message, or an error if the message contains no notice.
func (c *Client) parseNotice(m *azservicebus.ReceivedMessage) (*Notice, error) {
	if len(m.Body) > largestRequest {
		return nil, fmt.Errorf("%d bytes are not a notice", len(m.Body))
	}
	var d contract.DequeueContract
	if err := proto.Unmarshal(m.Body, &d); err != nil {
		return nil, fmt.Errorf("no DequeueContract: %w", err)
	}
	switch {
	case m.MessageID == "":
		return nil, errors.New("the message id is missing, so the bundle is unknown")
	case d.GetDataAvailableNotificationReferenceId() == "":
		return nil, errors.New("DataAvailableNotificationReferenceId is missing, so the events are unknown")
	case d.GetMarketOperator() == "":
		return nil, errors.New("marketOperator is missing, so the actor is unknown")
	}
	parent, state := traceOf(m)
	return &Notice{
		TraceParent: parent, TraceState: state,
		ID: m.MessageID, Recipient: d.GetMarketOperator(), List: d.GetDataAvailableNotificationReferenceId(),
		exchange: contentContainer{c.o.Exchange},
	}, nil
}

package node

import (
	"context"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// openBroker returns the broker's use cases. They deliver messages with the
// delivery engine of p.
func (p *push) openBroker(cfg *config.Config, ports broker.Ports, keys broker.Sealer, clock func() time.Time) *broker.Service {
	return broker.New(ports, keys, broker.Options{
		CheckURL:     func(ctx context.Context, url string) error { return asCallbackFault(p.client.CheckURL(ctx, url)) },
		CheckHeaders: func(headers map[string]string) error { return checkMetadata(headers, cfg.Broker.TokenHeader) },
		Created:      p.engine.Created, Changed: p.engine.Changed, Published: p.engine.Published, CheckStream: p.engine.CheckStream,
		IsCalling: p.engine.IsCalling, Settled: p.engine.Settled, Orphaned: p.engine.Orphaned, Clock: clock,
	})
}

// sealerOf converts keys to a Sealer. A nil pointer becomes a nil interface.
func sealerOf(keys *subscribe.Keyring) broker.Sealer {
	if keys == nil {
		return nil
	}
	return keys
}

// asCallbackFault adds the name of the form field callbackUrl to an error about
// a URL.
func asCallbackFault(err error) error {
	if err == nil {
		return nil
	}
	return domain.Errorf(domain.KindOf(err), "callbackUrl: %s", strings.TrimPrefix(err.Error(), "/callback_url: "))
}

// checkMetadata rejects a producer's headers that the hub sets itself in its
// calls.
func checkMetadata(headers map[string]string, tokenHeader string) error {
	if _, isToken := headers[tokenHeader]; isToken {
		return domain.Errorf(domain.Invalid, "/headers/%s: the hub sets it", tokenHeader)
	}
	return webhook.CheckHeaders(headers)
}

// A callees finds the consumer or watch to which a cursor belongs. It passes
// other cursors to the next source, others.
type callees struct {
	others  delivery.Receivers
	broker  *broker.Service
	policy  domain.Policy
	watches *watches
}

// Receiver implements [delivery.Receivers].
func (c *callees) Receiver(ctx context.Context, cursor domain.CursorID, isCurrent bool) (delivery.Receiver, error) {
	if _, _, isWatch := domain.WatchOf(cursor); isWatch && c.watches != nil {
		return c.watches.receiverOf(ctx, cursor, isCurrent)
	}
	if _, isConsumer := domain.ConsumerOf(cursor); !isConsumer {
		return c.others.Receiver(ctx, cursor, isCurrent)
	}
	found, err := c.broker.Callee(ctx, cursor)
	if err != nil {
		return delivery.Receiver{}, err
	}
	return delivery.Receiver{Policy: c.policy, KeepsMarks: true, Target: found}, nil
}

// callConsumer delivers a message to a consumer's callback URL.
func (c *httpCaller) callConsumer(ctx context.Context, to *broker.ConsumerCall, call *delivery.Call, m *domain.Message) domain.Answer {
	at := call.Entry.Position.EntryID
	result, err := c.client.Call(ctx, &webhook.ConsumerCall{
		ID:       webhook.DeliveryID(call.Cursor, to.ID.Stream(), at, call.Entry.Published),
		Attempts: call.Attempt, CallbackURL: to.CallbackURL, Token: webhook.Key(to.Token), TokenHeader: c.tokenHeader,
		Channel: to.ID.Channel().String(), Consumer: to.ID.String(), Message: at.MessageID(), Priority: at.Priority,
		ContentType: m.ContentType, Metadata: broker.MetadataOf(m), Payload: m.Payload,
	})
	if err != nil {
		return timeoutResult().Answer
	}
	return result.Answer
}

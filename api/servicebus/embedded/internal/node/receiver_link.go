package node

import (
	"errors"
	"slices"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// attachSender accepts a link on which a client sends messages to an entity.
func (p *peer) attachSender(l *server.Link, path string) {
	if !p.requireRight(l, path, sas.Send) {
		return
	}
	p.namespace.ensureEntity(path, false, func(err error) {
		if err != nil {
			l.Refuse(entityRefusal(path, err))
			return
		}
		e, err := p.namespace.Bus.Entity(path)
		switch {
		case err == nil && e.Kind == bus.Subscription:
			err = amqp.Errorf(amqp.NotAllowed, "a subscription cannot be sent to; send to its topic")
		case err == nil && (e.Status == bus.StatusDisabled || e.Status == bus.StatusSendDisabled):
			err = bus.ErrDisabled
		}
		if err != nil {
			l.Refuse(entityRefusal(path, err))
			return
		}
		largest := uint64(e.MaxMessageBytes) //nolint:gosec // never negative
		terms := server.Terms{Credit: p.namespace.SendCredit, MaxMessageSize: largest}
		terms.Properties = terms.Properties.Set("com.microsoft:max-message-batch-size", min(largest, maxBatch))
		l.Receive(terms, &receiverLink{namespace: p.namespace, path: path, link: l})
	})
}

// maxBatch is the maximum size of a batch in bytes. The limit for single messages may be larger.
const maxBatch = 1 << 20

func entityRefusal(path string, err error) *amqp.Error {
	if errors.Is(err, bus.ErrNotFound) {
		return notFound(path)
	}
	e, _ := conditionOf(err)
	return e
}

// A receiverLink passes a client's messages to the bus.
type receiverLink struct {
	namespace *Namespace
	path      string
	link      *server.Link
}

// Delivered implements server.Receiver.
func (i *receiverLink) Delivered(d *server.Delivery) {
	if d.State != nil {
		d.Settle(amqp.Rejected{Error: amqp.Errorf(amqp.NotImplemented, "transactions are not supported")})
		return
	}
	messages, err := decodeBatch(d.Format, d.Payload)
	if err != nil {
		d.Settle(rejectedState(err))
		return
	}
	i.namespace.Bus.Send(i.path, messages, func(err error) {
		switch {
		case err == nil:
			d.Settle(amqp.Accepted{})
		case errors.Is(err, bus.ErrNotFound):
			d.Settle(rejectedState(err))
			i.link.Detach(notFound(i.path))
		default:
			// clients treat rejected as a failure; some ignore the remaining failure states
			d.Settle(rejectedState(err))
		}
	})
}

func rejectedState(err error) amqp.Rejected {
	e, _ := conditionOf(err)
	return amqp.Rejected{Error: &amqp.Error{Condition: e.Condition, Description: e.Description, Info: slices.Clone(e.Info)}}
}

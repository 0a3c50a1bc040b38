package node

import (
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
)

const (
	sessionFilter  amqp.Symbol = "com.microsoft:session-filter"
	timeoutWanted              = "com.microsoft:timeout"
	lockedUntilUTC amqp.Symbol = "com.microsoft:locked-until-utc"
)

// A sessionRequest is the session filter that a client has sent. Clients send the filter either as a described value or
// as a plain value, and expect the same form in the reply.
type sessionRequest struct {
	id         *string // id is the requested session; nil requests the next free session
	descriptor any
}

// sessionFilterOf returns the session filter in the source of an attach.
func sessionFilterOf(a *amqp.Attach) (f sessionRequest, found bool) {
	source, ok := a.Source.(*amqp.Source)
	if !ok || source == nil {
		return f, false
	}
	for _, e := range source.Filter {
		if e.Key != any(sessionFilter) {
			continue
		}
		value := e.Value
		if described, ok := value.(amqp.Described); ok {
			f.descriptor, value = described.Descriptor, described.Value
		}
		if id, ok := value.(string); ok {
			f.id = &id
		}
		return f, true
	}
	return f, false
}

// grantedSource returns the source for the reply to an attach. It equals the requested source, but contains the id of
// the granted session.
func (f sessionRequest) grantedSource(a *amqp.Attach, id string) *amqp.Source {
	source := *a.Source.(*amqp.Source) // the assertion succeeds, because sessionFilterOf found a filter in this source
	source.Filter = append(amqp.Map(nil), source.Filter...)
	value := any(id)
	if f.descriptor != nil {
		value = amqp.Described{Descriptor: f.descriptor, Value: id}
	}
	source.Filter = source.Filter.Set(sessionFilter, value)
	return &source
}

// acceptSession waits until a session is granted, and then accepts the link.
func (o *senderLink) acceptSession(f sessionRequest) {
	want := bus.SessionRequest{ID: f.id, Timeout: sessionTimeout}
	if timeout, ok := parseMilliseconds(o.link.Wants.Properties.Get(timeoutWanted)); ok {
		want.Timeout = timeout
	}
	cancel := o.peer.namespace.Bus.AcceptSession(o.path, want, o.receiverOptions(), func(r *bus.Receiver, err error) {
		if err != nil {
			o.link.Refuse(entityRefusal(o.path, err))
			return
		}
		id := r.SessionID()
		o.recordSession(id)
		if o.beginReceiving(r) {
			o.link.Send(server.Terms{
				Source:     f.grantedSource(o.link.Wants, id),
				Properties: amqp.Map{{Key: lockedUntilUTC, Value: toTicks(r.LockedUntil())}},
			}, o)
		}
	})
	o.link.WhenGone(cancel)
}

// recordSession records that the link has locked a session, because later requests name only the link.
func (o *senderLink) recordSession(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return
	}
	o.session = &id
	o.peer.mu.Lock()
	defer o.peer.mu.Unlock()
	o.peer.sessions[o.link.Name] = id
}

// toTicks converts a time to .NET ticks, which are units of 100 ns since the year 1.
func toTicks(t time.Time) int64 {
	const untilUnixEpoch = 62_135_596_800
	return (t.Unix()+untilUnixEpoch)*10_000_000 + int64(t.Nanosecond())/100
}

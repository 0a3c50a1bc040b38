package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// attachManagement accepts a link to or from the management node of an entity.
func (p *peer) attachManagement(l *server.Link, path string) {
	if !p.requireRight(l, path, sas.Listen, sas.Send, sas.Manage) {
		return
	}
	p.namespace.ensureEntity(path, false, func(err error) {
		if err != nil {
			l.Refuse(entityRefusal(path, err))
			return
		}
		if !l.PeerSends() {
			p.attachReplies(l, path)
			return
		}
		m := &manager{peer: p, path: path}
		l.Receive(server.Terms{Credit: requestCredit, MaxMessageSize: maxBatch}, &requestLink{
			peer: p, node: path, handle: m.handleRequest,
			names: [3]string{"statusCode", "statusDescription", "errorCondition"},
		})
	})
}

// A manager handles the management requests for one entity.
type manager struct {
	peer *peer
	path string
}

// operations are the management operations by name. Each has the right that it requires.
var operations = map[string]struct {
	needs sas.Rights
	do    func(*manager, clientRequest, func(requestReply))
}{
	"com.microsoft:renew-lock":                 {sas.Listen, (*manager).renewLocks},
	"com.microsoft:update-disposition":         {sas.Listen, (*manager).settleMessages},
	"com.microsoft:peek-message":               {sas.Listen, (*manager).peekMessages},
	"com.microsoft:receive-by-sequence-number": {sas.Listen, (*manager).receiveDeferred},
	"com.microsoft:schedule-message":           {sas.Send, (*manager).scheduleMessages},
	"com.microsoft:cancel-scheduled-message":   {sas.Send, (*manager).cancelScheduled},
	"com.microsoft:renew-session-lock":         {sas.Listen, (*manager).renewSession},
	"com.microsoft:get-session-state":          {sas.Listen, (*manager).sessionState},
	"com.microsoft:set-session-state":          {sas.Listen, (*manager).setSessionState},
	"com.microsoft:get-message-sessions":       {sas.Listen, (*manager).listSessions},
	"com.microsoft:add-rule":                   {sas.Manage, (*manager).addRule},
	"com.microsoft:remove-rule":                {sas.Manage, (*manager).removeRule},
	"com.microsoft:enumerate-rules":            {sas.Manage, (*manager).listRules},
}

func (m *manager) handleRequest(r clientRequest, done func(requestReply)) {
	op, known := operations[r.operation]
	switch {
	case !known:
		done(requestReply{status: 501, description: "the operation " + r.operation + " is not supported", condition: operationUnknown})
	case !m.peer.hasRight(m.path, op.needs):
		done(requestReply{status: 401, description: unauthorizedError(m.path, op.needs).Description, condition: amqp.UnauthorizedAccess})
	case r.arguments == nil:
		done(requestReply{status: 400, description: "the request has no map of arguments", condition: argumentError})
	default:
		op.do(m, r, done)
	}
}

func (m *manager) busOf() *bus.Bus { return m.peer.namespace.Bus }

// newReply returns a reply with a value, or with an error.
func newReply(value amqp.Map, err error) requestReply {
	if err != nil {
		return errorReply(err)
	}
	return requestReply{status: 200, description: "OK", value: value}
}

func missingArgument(argument string) requestReply {
	return requestReply{status: 400, description: "the argument " + argument + " is missing, or has a wrong type", condition: argumentError}
}

// elementsOf returns the elements of an array or a list.
func elementsOf[T any](v any) ([]T, bool) {
	var all []any
	switch v := v.(type) {
	case amqp.Array:
		all = v.Values
	case amqp.List:
		all = v
	default:
		one, ok := v.(T)
		return []T{one}, ok
	}
	out := make([]T, len(all))
	for i, e := range all {
		one, ok := e.(T)
		if !ok {
			return nil, false
		}
		out[i] = one
	}
	return out, true
}

func lockTokens(r clientRequest) ([]bus.LockToken, bool) {
	ids, ok := elementsOf[amqp.UUID](r.arguments.Get("lock-tokens"))
	tokens := make([]bus.LockToken, len(ids))
	for i, id := range ids {
		tokens[i] = bus.LockToken(id)
	}
	return tokens, ok && len(tokens) > 0
}

func (m *manager) renewLocks(r clientRequest, done func(requestReply)) {
	tokens, ok := lockTokens(r)
	if !ok {
		done(missingArgument("lock-tokens"))
		return
	}
	m.busOf().RenewLocks(m.path, tokens, func(until []time.Time, err error) {
		expirations := amqp.Array{Of: amqp.OfTimestamp}
		for _, t := range until {
			expirations.Values = append(expirations.Values, toTimestamp(t))
		}
		done(newReply(amqp.Map{{Key: "expirations", Value: expirations}}, err))
	})
}

func (m *manager) settleMessages(r clientRequest, done func(requestReply)) {
	tokens, ok := lockTokens(r)
	if !ok {
		done(missingArgument("lock-tokens"))
		return
	}
	var how bus.Settlement
	switch status, _ := r.arguments.Get("disposition-status").(string); status {
	case "completed":
		how.Outcome = bus.Complete
	case "abandoned":
		how.Outcome = bus.Abandon
	case "suspended":
		how.Outcome = bus.DeadLetter
	case "defered", "deferred":
		how.Outcome = bus.Defer
	case "unlocked", "released":
		how.Outcome = bus.Release
	default:
		done(missingArgument("disposition-status"))
		return
	}
	how.Reason, _ = r.arguments.Get("deadletter-reason").(string)
	how.Description, _ = r.arguments.Get("deadletter-description").(string)
	changes, _ := r.arguments.Get("properties-to-modify").(amqp.Map)
	how.Properties = stringMap(changes)
	m.busOf().Settle(m.path, tokens, how, func(err error) { done(newReply(nil, err)) })
}

func (m *manager) peekMessages(r clientRequest, done func(requestReply)) {
	from, ok := r.arguments.Get("from-sequence-number").(int64)
	if !ok {
		done(missingArgument("from-sequence-number"))
		return
	}
	count, ok := r.arguments.Get("message-count").(int32)
	if !ok || count < 1 {
		done(missingArgument("message-count"))
		return
	}
	list, err := m.readMessages(bus.PeekOptions{From: from, Max: int(count), SessionID: m.sessionOf(r)})
	switch {
	case err != nil:
		done(errorReply(err))
	case len(list) == 0:
		done(requestReply{status: 204, description: "No Content", condition: messageNotFound})
	default:
		done(newReply(amqp.Map{{Key: "messages", Value: list}}, nil))
	}
}

// readMessages peeks messages in small pages until it has the requested number of messages or the reply is full.
func (m *manager) readMessages(o bus.PeekOptions) (amqp.List, error) {
	const page = 16
	var list amqp.List
	for wanted, size := o.Max, 0; wanted > len(list); {
		o.Max = min(wanted-len(list), page)
		found, err := m.busOf().Peek(m.path, o)
		if err != nil {
			return nil, err
		}
		for i := range found {
			payload, err := encodeMessage(&found[i], bus.LockToken{}, time.Time{})
			if err != nil {
				return nil, err
			}
			if size += len(payload); size > maxAnswer && len(list) > 0 {
				return list, nil
			}
			list = append(list, amqp.Map{{Key: "message", Value: payload}})
			o.From = found[i].SequenceNumber + 1
		}
		if len(found) < o.Max {
			break
		}
	}
	return list, nil
}

const (
	// maxAnswer limits the bytes of the messages in a reply. Only the first message may exceed it.
	maxAnswer = 1 << 20

	// maxFetched is the maximum number of messages that one request may name by sequence number.
	maxFetched = 250
)

func (m *manager) receiveDeferred(r clientRequest, done func(requestReply)) {
	numbers, ok := elementsOf[int64](r.arguments.Get("sequence-numbers"))
	if !ok {
		done(missingArgument("sequence-numbers"))
		return
	}
	if len(numbers) > maxFetched {
		done(requestReply{status: 400, description: fmt.Sprintf("%d sequence numbers; fetch at most %d at a time", len(numbers), maxFetched), condition: argumentError})
		return
	}
	mode := bus.PeekLock
	if settle, _ := r.arguments.Get("receiver-settle-mode").(uint32); settle == 0 {
		mode = bus.ReceiveAndDelete
	}
	m.busOf().ReceiveDeferred(m.path, numbers, mode, m.sessionOf(r), func(found []bus.Delivery, err error) {
		if errors.Is(err, bus.ErrNotFound) {
			done(requestReply{status: 404, description: err.Error(), condition: messageNotFound})
			return
		}
		if err != nil {
			done(errorReply(err))
			return
		}
		list := make(amqp.List, 0, len(found))
		for i := range found {
			d := &found[i]
			payload, err := encodeMessage(&d.Message, d.Token, d.LockedUntil)
			if err != nil {
				done(errorReply(err))
				return
			}
			list = append(list, amqp.Map{{Key: "message", Value: payload}, {Key: "lock-token", Value: amqp.UUID(d.Token)}})
		}
		done(newReply(amqp.Map{{Key: "messages", Value: list}}, nil))
	})
}

func (m *manager) scheduleMessages(r clientRequest, done func(requestReply)) {
	entries, ok := elementsOf[amqp.Map](r.arguments.Get("messages"))
	if !ok {
		done(missingArgument("messages"))
		return
	}
	batch := make([]bus.Message, len(entries))
	for i, entry := range entries {
		encoded, ok := entry.Get("message").([]byte)
		if !ok {
			done(missingArgument("message"))
			return
		}
		var err error
		if batch[i], err = decodeMessage(encoded); err != nil {
			done(errorReply(err))
			return
		}
	}
	m.busOf().Schedule(m.path, batch, func(numbers []int64, err error) {
		sequence := amqp.Array{Of: amqp.OfLong}
		for _, n := range numbers {
			sequence.Values = append(sequence.Values, n)
		}
		done(newReply(amqp.Map{{Key: "sequence-numbers", Value: sequence}}, err))
	})
}

func (m *manager) cancelScheduled(r clientRequest, done func(requestReply)) {
	numbers, ok := elementsOf[int64](r.arguments.Get("sequence-numbers"))
	if !ok {
		done(missingArgument("sequence-numbers"))
		return
	}
	m.busOf().CancelScheduled(m.path, numbers, func(err error) { done(newReply(nil, err)) })
}

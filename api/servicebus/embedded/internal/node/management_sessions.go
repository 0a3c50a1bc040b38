package node

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// sessionOf is the session that a request is about: the one it names, or that
// of the link it names.
func (m *manager) sessionOf(r request) *string {
	if id, ok := r.arguments.Get("session-id").(string); ok {
		return &id
	}
	name, _ := r.properties.Get("associated-link-name").(string)
	m.peer.mu.Lock()
	defer m.peer.mu.Unlock()
	if id, held := m.peer.sessions[name]; held {
		return &id
	}
	return nil
}

func (m *manager) renewSession(r request, done func(reply)) {
	id := m.sessionOf(r)
	if id == nil {
		done(missing("session-id"))
		return
	}
	m.bus().RenewSession(m.path, *id, func(until time.Time, err error) {
		done(answer(amqp.Map{{Key: "expiration", Value: timestamp(until)}}, err))
	})
}

func (m *manager) sessionState(r request, done func(reply)) {
	id := m.sessionOf(r)
	if id == nil {
		done(missing("session-id"))
		return
	}
	m.bus().SessionState(m.path, *id, func(state []byte, err error) {
		value := any(nil)
		if len(state) > 0 {
			value = state
		}
		done(answer(amqp.Map{{Key: "session-state", Value: value}}, err))
	})
}

// setSessionState stores a state; an empty one clears it, as null does.
func (m *manager) setSessionState(r request, done func(reply)) {
	id := m.sessionOf(r)
	state, isState := r.arguments.Get("session-state").([]byte)
	switch {
	case id == nil:
		done(missing("session-id"))
	case !isState && r.arguments.Get("session-state") != nil:
		done(missing("session-state"))
	default:
		m.bus().SetSessionState(m.path, *id, state, func(err error) { done(answer(nil, err)) })
	}
}

func (m *manager) listSessions(r request, done func(reply)) {
	since, ok := r.arguments.Get("last-updated-time").(amqp.Timestamp)
	if !ok {
		done(missing("last-updated-time"))
		return
	}
	skip, _ := r.arguments.Get("skip").(int32)
	top, ok := r.arguments.Get("top").(int32)
	if !ok || top < 1 || skip < 0 {
		done(missing("top"))
		return
	}
	ids, err := m.sessions(since, int(skip), int(top))
	if err != nil {
		done(refused(err))
		return
	}
	if len(ids) == 0 {
		done(reply{status: 204, description: "No Content"})
		return
	}
	list := amqp.Array{Of: amqp.OfString}
	for _, id := range ids {
		list.Values = append(list.Values, id)
	}
	done(answer(amqp.Map{{Key: "skip", Value: skip + int32(len(ids))}, {Key: "sessions-ids", Value: list}}, nil)) //nolint:gosec // at most top
}

// sessions lists the sessions whose state has changed since, or, in the year
// 10000, all those that have messages or a state.
func (m *manager) sessions(since amqp.Timestamp, skip, top int) ([]string, error) {
	const all = 253402300800000
	if since < all {
		return m.bus().Sessions(m.path, fromTimestamp(since), skip, top)
	}
	ids, err := m.everySession(time.Time{})
	if err != nil {
		return nil, err
	}
	withState, err := m.everySession(time.UnixMilli(1))
	if err != nil {
		return nil, err
	}
	ids = append(ids, withState...)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	ids = ids[min(skip, len(ids)):]
	return ids[:min(top, len(ids))], nil
}

// everySession reads all pages of a list.
func (m *manager) everySession(since time.Time) ([]string, error) {
	const page = 1000
	var ids []string
	for {
		next, err := m.bus().Sessions(m.path, since, len(ids), page)
		if err != nil || len(next) == 0 {
			return ids, err
		}
		ids = append(ids, next...)
	}
}

package node

import (
	"slices"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
)

// sessionOf returns the session that a request names. If the request names a link instead, sessionOf returns the
// session of the link.
func (m *manager) sessionOf(r clientRequest) *string {
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

func (m *manager) renewSession(r clientRequest, done func(requestReply)) {
	id := m.sessionOf(r)
	if id == nil {
		done(missingArgument("session-id"))
		return
	}
	m.busOf().RenewSession(m.path, *id, func(until time.Time, err error) {
		done(newReply(amqp.Map{{Key: "expiration", Value: toTimestamp(until)}}, err))
	})
}

func (m *manager) sessionState(r clientRequest, done func(requestReply)) {
	id := m.sessionOf(r)
	if id == nil {
		done(missingArgument("session-id"))
		return
	}
	m.busOf().SessionState(m.path, *id, func(state []byte, err error) {
		value := any(nil)
		if len(state) > 0 {
			value = state
		}
		done(newReply(amqp.Map{{Key: "session-state", Value: value}}, err))
	})
}

// setSessionState stores the state of a session. An empty or null state removes the stored state.
func (m *manager) setSessionState(r clientRequest, done func(requestReply)) {
	id := m.sessionOf(r)
	state, isState := r.arguments.Get("session-state").([]byte)
	switch {
	case id == nil:
		done(missingArgument("session-id"))
	case !isState && r.arguments.Get("session-state") != nil:
		done(missingArgument("session-state"))
	default:
		m.busOf().SetSessionState(m.path, *id, state, func(err error) { done(newReply(nil, err)) })
	}
}

func (m *manager) listSessions(r clientRequest, done func(requestReply)) {
	since, ok := r.arguments.Get("last-updated-time").(amqp.Timestamp)
	if !ok {
		done(missingArgument("last-updated-time"))
		return
	}
	skip, _ := r.arguments.Get("skip").(int32)
	top, ok := r.arguments.Get("top").(int32)
	if !ok || top < 1 || skip < 0 {
		done(missingArgument("top"))
		return
	}
	ids, err := m.sessionsSince(since, int(skip), int(top))
	if err != nil {
		done(errorReply(err))
		return
	}
	if len(ids) == 0 {
		done(requestReply{status: 204, description: "No Content"})
		return
	}
	list := amqp.Array{Of: amqp.OfString}
	for _, id := range ids {
		list.Values = append(list.Values, id)
	}
	done(newReply(amqp.Map{{Key: "skip", Value: skip + int32(len(ids))}, {Key: "sessions-ids", Value: list}}, nil)) //nolint:gosec // at most top
}

// sessionsSince lists the sessions whose state has changed since the given time. For a time in the year 10000, it lists
// all sessions that have messages or a state.
func (m *manager) sessionsSince(since amqp.Timestamp, skip, top int) ([]string, error) {
	const all = 253402300800000
	if since < all {
		return m.busOf().Sessions(m.path, fromTimestamp(since), skip, top)
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

// everySession reads the list of sessions page by page and returns the complete list.
func (m *manager) everySession(since time.Time) ([]string, error) {
	const page = 1000
	var ids []string
	for {
		next, err := m.busOf().Sessions(m.path, since, len(ids), page)
		if err != nil || len(next) == 0 {
			return ids, err
		}
		ids = append(ids, next...)
	}
}

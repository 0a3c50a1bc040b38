package delivery

import (
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Most actors have no receiver that waits for their data. So a Save signals nothing unless a node
// has announced, by its beats, that it serves a cursor of the stream.

// awaiting has the data streams of which a node serves cursors. The mutex of the membership guards
// its fields.
type awaiting struct {
	isKnown   bool                 // others was read from the beats of the other nodes
	others    repository.StreamSet // streams of the other nodes that are alive
	unsent    []domain.StreamName  // streams of this node that no beat has announced
	announced []streamAnnouncement // announcements that another node may not have read before a Save
}

type streamAnnouncement struct {
	stream domain.StreamName
	at     time.Time
}

// markAnnounced records that the first n unsent streams were announced, to other nodes if
// isShared.
func (a *awaiting) markAnnounced(n int, isShared bool) {
	now := time.Now()
	for _, stream := range a.unsent[:n] {
		if isShared {
			a.announced = append(a.announced, streamAnnouncement{stream, now})
		}
	}
	a.unsent = a.unsent[n:]
}

// announceStream announces that the node begins to serve a cursor of a data stream. It does
// nothing for other streams, whose entries are always signalled.
func (m *membership) announceStream(stream domain.StreamName) {
	if _, ok := stream.DataActor(); !ok {
		return
	}
	m.mu.Lock()
	m.awaiting.unsent = append(m.awaiting.unsent, stream)
	m.mu.Unlock()
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// signalAwaited signals that a data stream may have new entries, if another node serves a
// cursor of it. While there are many signals it does nothing: the other node finds the entries
// by its looks.
func (m *membership) signalAwaited(stream domain.StreamName) {
	m.mu.Lock()
	isWanted := (!m.awaiting.isKnown || m.awaiting.others.Has(stream)) && m.signalled-m.sent < repository.MaxSignals/2
	m.mu.Unlock()
	if isWanted {
		m.sendSignal(repository.Signal{Stream: stream})
	}
}

// knownAfter is the time after which all nodes know an announcement.
const knownAfter = 2 * checkEvery

// checkAnnounced reads the ends of streams whose announcements all nodes know now. A node that
// did not know an announcement may have saved data without a signal.
func (m *membership) checkAnnounced() {
	var known []domain.StreamName
	m.mu.Lock()
	for len(m.awaiting.announced) > 0 && time.Since(m.awaiting.announced[0].at) >= knownAfter {
		known = append(known, m.awaiting.announced[0].stream)
		m.awaiting.announced = m.awaiting.announced[1:]
	}
	m.mu.Unlock()
	for _, stream := range known {
		m.engine.checkStreamSoon(stream)
	}
}

// awaitedStreams returns the data streams whose cursors the node serves.
func (e *Engine) awaitedStreams() (all repository.StreamSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for stream := range e.topics {
		if _, ok := stream.DataActor(); ok {
			all.Add(stream)
		}
	}
	return all
}

package delivery

import (
	"log/slog"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// hasShard reports whether the node serves a shard.
func (e *Engine) hasShard(shard int) bool {
	if e.members == nil {
		return e.opts.Owns(shard)
	}
	return e.members.hasShard(shard)
}

// isAssigned reports whether a shard is assigned to the node. The node may be releasing it.
func (e *Engine) isAssigned(shard int) bool { return e.members == nil || e.members.isAssigned(shard) }

// mayCall reports whether calls of the cursors of a shard may begin.
func (e *Engine) mayCall(shard int) bool { return e.members == nil || e.members.mayCall(shard) }

// mayLoad reports whether the cursors of a shard may be loaded.
func (e *Engine) mayLoad(shard int) bool { return e.members == nil || e.members.mayLoad(shard) }

// sendSignal notifies the other nodes of a change that this process has stored.
func (e *Engine) sendSignal(s repository.Signal) {
	if e.members != nil {
		e.members.sendSignal(s)
	}
}

// requestShard makes the node take the shard of a cursor that it was asked about, if the owner
// of the shard has died.
func (e *Engine) requestShard(id domain.CursorID) {
	if e.members != nil {
		e.members.requestShard(id)
	}
}

// handleSignals handles the signals of another node, except for the first handled signals of that
// node.
func (e *Engine) handleSignals(n *repository.Node, handled int64) {
	first := n.Signalled - int64(len(n.Signals))
	if handled < first {
		e.findWorkSoon() // some signals were missed
	}
	for _, s := range n.Signals[max(handled-first, 0):] {
		switch {
		case s.Stream == (domain.StreamName{}):
			e.receiverChanged(s.Cursor)
		case s.Cursor != (domain.CursorID{}):
			e.serveCreated(repository.ShardEntry{Cursor: s.Cursor, Stream: s.Stream})
		default:
			e.handlePublished(s.Stream)
		}
	}
}

// handlePublished reads the end of a stream to which another node has appended.
func (e *Engine) handlePublished(stream domain.StreamName) {
	t := e.topicOf(stream)
	if t == nil {
		return
	}
	e.store.runTask(t, func() {
		if err := e.readEnd(e.ctx, t); err != nil {
			e.logWarning(e.ctx, "read the end of a stream", err, slog.String("stream", stream.String()))
		}
	})
}

// serveShards serves the cursors of shards that the node has taken.
func (e *Engine) serveShards(shards []int) {
	for _, shard := range shards {
		if err := e.serveShard(e.ctx, shard); err != nil {
			e.findWorkSoon()
			return
		}
	}
}

// serveAgain begins a new service after s has ended, if the node has taken the shard again, or
// if the cursor was created after s had not found it.
func (e *Engine) serveAgain(s *service) {
	e.serveCursor(repository.ShardEntry{Cursor: s.id, Stream: s.topic.stream})
}

// shedShards ends the services of shards.
func (e *Engine) shedShards(shards []int) {
	if len(shards) == 0 {
		return
	}
	var isShed [repository.ShardCount]bool
	for _, shard := range shards {
		isShed[shard] = true
	}
	for _, w := range e.watchedOf(func(w *watchedStream) bool { return isShed[w.shard] }) {
		w.endVisits()
	}
	for _, s := range e.allServices() {
		if isShed[s.shard] {
			s.postShed()
		}
	}
}

func (s *service) postShed() { s.postEvent(func(in *inbox) { in.shed = true }) }

// wakeAll wakes all services, because some have paused until it is certain that the node owns
// their shards.
func (e *Engine) wakeAll() {
	for _, s := range e.allServices() {
		s.tick()
	}
}

func (e *Engine) allServices() []*service {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*service, 0, len(e.services))
	for _, s := range e.services {
		all = append(all, s)
	}
	return all
}

// isServing reports whether a cursor of a shard is served.
func (e *Engine) isServing(shard int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.services {
		if s.shard == shard {
			return true
		}
	}
	return false
}

func (e *Engine) isStopping() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state != engineRunning
}

package delivery

import (
	"log/slog"

	"github.com/messagehub/messagehub/domain"
)

// CheckStream notifies the engine that a stream may have new entries, when the caller does not have
// the entries. It signals this to the nodes that serve cursors of the stream, and reads the end
// of the stream if this node serves one.
func (e *Engine) CheckStream(stream domain.StreamName) {
	if e.members != nil {
		e.members.signalAwaited(stream)
	}
	e.checkStreamSoon(stream)
}

// checkStreamSoon reads the end of a stream if a cursor of the stream is served. Calls before the read
// begins share one read.
func (e *Engine) checkStreamSoon(stream domain.StreamName) {
	t := e.topicOf(stream)
	if t == nil {
		return
	}
	t.mu.Lock()
	isQueued := t.isCheckQueued
	t.isCheckQueued = true
	t.mu.Unlock()
	if isQueued {
		return
	}
	e.store.runTask(t, func() {
		t.mu.Lock()
		t.isCheckQueued = false
		t.mu.Unlock()
		if err := e.readEnd(e.ctx, t); err != nil {
			e.logWarning(e.ctx, "read the end of a stream", err, slog.String("stream", stream.String()))
		}
	})
}

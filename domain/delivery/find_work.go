package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// findWork finds the cursors of the shards that this node owns, and the entries that other
// nodes have appended to their streams. It returns promptly after ctx ends.
func (e *Engine) findWork(ctx context.Context) {
	for shard := range repository.ShardCount {
		if ctx.Err() != nil {
			return
		}
		if e.hasShard(shard) {
			_ = e.serveShard(ctx, shard) // the error is logged, and the next look tries again
		}
	}
	e.mu.Lock()
	topics := make([]*topic, 0, len(e.topics))
	for _, t := range e.topics {
		topics = append(topics, t)
	}
	e.mu.Unlock()
	for _, t := range topics {
		if err := e.readEnd(ctx, t); err != nil {
			e.logWarning(ctx, "read the end of a stream", err, slog.String("stream", t.stream.String()))
		}
	}
}

// serveShard serves the cursors of a shard whose entries can be read. An entry that is damaged,
// or of a newer format, is logged and does not count as a failure: another read would not help.
func (e *Engine) serveShard(ctx context.Context, shard int) error {
	entries, watched, err := e.Shards.Cursors(ctx, shard)
	if err != nil {
		e.logWarning(ctx, "list the cursors of a shard", err, slog.Int("shard", shard))
	}
	for _, entry := range entries {
		if s, _ := e.serveCursor(entry); s != nil && s.isWatch && !s.isNoted.Swap(true) {
			s.postEvent(func(in *inbox) { in.listed = true })
		}
		e.followChanges(entry)
	}
	for _, stream := range watched {
		e.serveWatched(shard, stream)
	}
	if err == nil {
		e.forgetUnlisted(shard, watched)
	}
	switch domain.KindOf(err) {
	case domain.Damaged, domain.NewerFormat:
		return nil
	default:
		return err
	}
}

// followChanges makes a service look up the receiver of its cursor again if the entry shows a
// change since the last look. The node that stored the change may have died before it sent a
// signal.
func (e *Engine) followChanges(entry repository.ShardEntry) {
	e.mu.Lock()
	s := e.services[entry.Cursor]
	e.mu.Unlock()
	if s != nil && s.noted.Swap(entry.Changes) != entry.Changes {
		s.postEvent(func(in *inbox) { in.changed = true })
	}
}

// minCheckInterval is the minimum time between two looks.
const minCheckInterval = 5 * time.Second

// findWorkSoon schedules an early look at all shards and streams.
func (e *Engine) findWorkSoon() {
	select {
	case e.findWorkNow <- struct{}{}:
	default:
	}
}

// readEnd reads the end of a stream, and wakes its cursors if the end has moved.
func (e *Engine) readEnd(ctx context.Context, t *topic) error {
	end, err := e.Streams.End(ctx, t.stream)
	if err != nil {
		return err
	}
	e.extendStream(t, end)
	return nil
}

// readCurrentEnd does the same as readEnd, without the risk of a stale read.
func (e *Engine) readCurrentEnd(ctx context.Context, t *topic) error {
	end, err := e.Streams.CurrentEnd(ctx, t.stream)
	if err != nil {
		return err
	}
	e.extendStream(t, end)
	return nil
}

// extendStream records the end of a stream, and wakes its cursors if the end has moved.
func (e *Engine) extendStream(t *topic, end repository.StreamEnd) {
	changed := false
	for _, p := range end.Positions {
		changed = t.extendEnd(p.Priority, p.Number) || changed
	}
	t.mu.Lock()
	changed = changed || !t.isChecked
	t.isChecked = true
	t.mu.Unlock()
	if changed {
		t.wakeCursors()
	}
}

const sweepEvery = time.Hour

// sweepRegularly removes expired entries, until the engine ends.
func (e *Engine) sweepRegularly() {
	if e.opts.Sweep == nil {
		return
	}
	for {
		if err := e.opts.Sweep(e.ctx); err != nil {
			e.logWarning(e.ctx, "remove expired entries", err)
		}
		timer := time.NewTimer(sweepEvery)
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// logWarning logs a failure that will be retried, unless the engine has ended or the store has
// logged it.
func (e *Engine) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	if ctx.Err() == nil && domain.KindOf(err) != domain.NewerFormat {
		e.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "deliveries wait for the store",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}

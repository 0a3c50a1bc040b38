package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Expires returns when the oldest message that waits for the receiver of a cursor will be
// removed, or zero if no message waits. It includes messages that do not match the filter. The
// reads may be stale.
func Expires(ctx context.Context, streams repository.Streams, cursors repository.Cursors, id domain.CursorID, s *domain.Standing) (time.Time, error) {
	if s.Stream == (domain.StreamName{}) || s.State == domain.Closed {
		return time.Time{}, nil
	}
	var oldest time.Time
	add := func(published time.Time) {
		if !published.IsZero() && (oldest.IsZero() || published.Before(oldest)) {
			oldest = published
		}
	}
	end, err := streams.End(ctx, s.Stream)
	if err != nil {
		return oldest, err
	}
	for _, p := range end.Positions {
		at := s.Position(p.Priority)
		if at.Number >= p.Number {
			continue
		}
		found, err := streams.Read(ctx, s.Stream, at, 1)
		if err != nil {
			return oldest, err
		}
		if len(found.Entries) > 0 {
			add(found.Entries[0].Published)
		}
	}
	if s.State == domain.Paused && s.Retries > 0 { // without a pause, retries end before their message expires
		retries, err := cursors.Retries(ctx, id, domain.EntryID{Number: -1}, 1)
		if err != nil && domain.KindOf(err) != domain.NotFound {
			return oldest, err
		}
		for i := range retries {
			add(retries[i].Published)
		}
	}
	if oldest.IsZero() {
		return oldest, nil
	}
	return oldest.Add(repository.MessageRetention), nil
}

const (
	reviewEvery = 10 * time.Minute
	warnEvery   = time.Hour // interval between warnings of one cursor
)

// Warned returns how many cursors of this node have a warning of a kind. The number is from the
// last review.
func (e *Engine) Warned(kind domain.WarningKind) int { return int(e.warned[kind].Load()) }

// reviewRegularly looks for warnings, until the engine ends.
func (e *Engine) reviewRegularly() {
	ticker := time.NewTicker(reviewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.reviewWarnings()
		case <-e.ctx.Done():
			return
		}
	}
}

// reviewWarnings counts the warnings of all served cursors, and logs the warnings of each
// cursor at most once in warnEvery. It reads no cursor without failures and waiting messages.
func (e *Engine) reviewWarnings() {
	counts := make([]int64, len(e.warned))
	for _, s := range e.allServices() {
		if !s.mayWarn.Load() {
			continue
		}
		warnings, err := e.warningsOf(s)
		if err != nil {
			e.logWarning(e.ctx, "look for warnings", err, slog.String("cursor", s.id.String()))
			continue
		}
		for _, w := range warnings {
			counts[w.Kind]++
		}
		if now := time.Now(); len(warnings) > 0 && (s.warnedAt.IsZero() || now.Sub(s.warnedAt) >= warnEvery) {
			s.warnedAt = now
			e.logWarnings(s.id, warnings)
		}
	}
	for kind, n := range counts {
		e.warned[kind].Store(n)
	}
}

func (e *Engine) warningsOf(s *service) ([]domain.Warning, error) {
	standing, err := e.Cursors.Standing(e.ctx, s.id)
	if domain.KindOf(err) == domain.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	expires, err := Expires(e.ctx, e.Streams, e.Cursors, s.id, &standing)
	return standing.Warnings(expires, e.opts.Clock()), err
}

func (e *Engine) logWarnings(id domain.CursorID, warnings []domain.Warning) {
	attrs := []slog.Attr{slog.String("cursor", id.String())}
	for _, w := range warnings {
		switch w.Kind {
		case domain.ReceiverFailing:
			attrs = append(attrs, slog.Time("failing_since", w.At))
		case domain.LastAttempts:
			attrs = append(attrs, slog.Int("on_last_attempts", w.Count))
		case domain.MessagesExpiring:
			attrs = append(attrs, slog.Time("oldest_expires", w.At))
		}
	}
	e.opts.Logger.LogAttrs(e.ctx, slog.LevelWarn, "messages for a receiver will become dead letters or expire, unless it accepts them or its subscription is resumed", attrs...)
}

// noteMayWarn records whether the next review has to check the cursor for warnings.
func (s *service) noteMayWarn() {
	s.mayWarn.Store(s.cursor.CanWarn() || !s.waitingPriorities().IsEmpty())
}

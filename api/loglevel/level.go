// Package loglevel provides a log level that operators can change temporarily.
//
// When the time of a change has passed, the configured level applies again, without a request or a
// goroutine. While a change applies, each read of the level compares the clock; otherwise a read is
// only one load from memory. The package does not check who may change the level, to which level,
// and for how long; the HTTP routes do.
package loglevel

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A Level is the level of a log. It is safe for concurrent use.
type Level struct {
	configured slog.Level
	clock      func() time.Time
	change     atomic.Pointer[levelChange] // nil if the configured level applies
}

// A levelChange is a level that applies until a time.
type levelChange struct {
	level slog.Level
	until time.Time
}

var _ slog.Leveler = (*Level)(nil)

// New returns a Level with the configured level. clock is time.Now, or the clock of a test.
func New(configured slog.Level, clock func() time.Time) *Level {
	return &Level{configured: configured, clock: clock}
}

// Level implements slog.Leveler.
func (l *Level) Level() slog.Level {
	level, _ := l.Current()
	return level
}

// Configured returns the configured level, whether or not a change applies.
func (l *Level) Configured() slog.Level { return l.configured }

// Current returns the level and, while a change applies, the end of the change.
func (l *Level) Current() (level slog.Level, until time.Time) {
	c := l.change.Load()
	if c == nil {
		return l.configured, time.Time{}
	}
	if !l.clock().Before(c.until) {
		l.change.CompareAndSwap(c, nil)
		return l.configured, time.Time{}
	}
	return c.level, c.until
}

// Change sets the level for the duration span. If level is the configured level, Change ends the
// current change.
func (l *Level) Change(level slog.Level, span time.Duration) {
	if level == l.configured {
		l.change.Store(nil)
		return
	}
	l.change.Store(&levelChange{level, l.clock().Add(span)})
}

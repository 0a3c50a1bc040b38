// Package loglevel has the level of a log, which operators change for a while.
//
// When the time has passed, the level is the configured one again, without a
// request or a goroutine: each reading compares the clock, and costs one load
// from memory while no change applies. The routes decide which levels operators
// may choose, for how long, and who they are.
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
	change     atomic.Pointer[levelChange] // nil: no change
}

// A levelChange is a level that applies until a time.
type levelChange struct {
	level slog.Level
	until time.Time
}

var _ slog.Leveler = (*Level)(nil)

// New returns a Level that is configured until it is changed. clock is
// time.Now, or a clock of a test.
func New(configured slog.Level, clock func() time.Time) *Level {
	return &Level{configured: configured, clock: clock}
}

// Level implements slog.Leveler.
func (l *Level) Level() slog.Level {
	level, _ := l.Current()
	return level
}

// Configured returns the level without a change.
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

// Change sets the level for a time. The configured level ends the change that applies.
func (l *Level) Change(level slog.Level, span time.Duration) {
	if level == l.configured {
		l.change.Store(nil)
		return
	}
	l.change.Store(&levelChange{level, l.clock().Add(span)})
}

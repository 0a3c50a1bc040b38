package loglevel_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/loglevel"
)

func TestLevel_ReturnsToTheConfiguredLevel(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := loglevel.New(slog.LevelInfo, func() time.Time { return now })
	require.Equal(t, slog.LevelInfo, l.Level())

	l.Change(slog.LevelDebug, time.Minute)
	now = now.Add(time.Minute - 1)
	level, until := l.Current()
	require.Equal(t, slog.LevelDebug, level)
	require.Equal(t, now.Add(1), until)
	now = now.Add(1)
	level, until = l.Current()
	require.Equal(t, slog.LevelInfo, level)
	require.Zero(t, until)
}

func TestLevel_ChangesTwice(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := loglevel.New(slog.LevelInfo, func() time.Time { return now })
	l.Change(slog.LevelDebug, time.Hour)
	l.Change(slog.LevelError, time.Minute)
	require.Equal(t, slog.LevelError, l.Level())
	now = now.Add(time.Minute)
	require.Equal(t, slog.LevelInfo, l.Level(), "the first change has ended with the second")

	l.Change(slog.LevelDebug, time.Hour)
	l.Change(slog.LevelInfo, time.Hour)
	level, until := l.Current()
	require.Equal(t, slog.LevelInfo, level)
	require.Zero(t, until)
	require.Equal(t, slog.LevelInfo, l.Configured())
}

func TestLevel_IsReadWhileItChanges(t *testing.T) {
	l := loglevel.New(slog.LevelInfo, time.Now)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				l.Change(slog.LevelDebug, time.Nanosecond)
				_ = l.Level()
			}
		})
	}
	all.Wait()
}

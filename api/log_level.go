package api

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/api/loglevel"
	"github.com/messagehub/messagehub/domain"
)

// logLevelPath is the path at which operators read and change the log level of one node.
const logLevelPath = "/v1/admin/log-level"

// Limits and default of the time for which an operator changes the log level. There is a maximum
// because the most detailed level logs each request to the store, and would eventually fill a disk.
const (
	minLogLevelSpan     = time.Second
	defaultLogLevelSpan = 10 * time.Minute
	maxLogLevelSpan     = 24 * time.Hour
)

// logLevels contains the levels that operators may choose. The setting log.level accepts the same
// levels.
var logLevels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

// A shownLogLevel is the JSON of the log level.
type shownLogLevel struct {
	Level      string     `json:"level"`
	Configured string     `json:"configured"`
	Until      *time.Time `json:"until,omitempty"` // time at which the current change ends
}

func logLevelName(level slog.Level) string { return strings.ToLower(level.String()) }

func newShownLogLevel(l *loglevel.Level) shownLogLevel {
	level, until := l.Current()
	shown := shownLogLevel{Level: logLevelName(level), Configured: logLevelName(l.Configured())}
	if !until.IsZero() {
		until = until.UTC()
		shown.Until = &until
	}
	return shown
}

func (s *Server) getLogLevel(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, newShownLogLevel(s.opts.LogLevel))
	return nil
}

// putLogLevel changes the log level for a while. The order is recorded only in the log, because the
// level belongs to one process. It is logged as a warning, so that a log of the level warn contains
// it.
func (s *Server) putLogLevel(w http.ResponseWriter, r *http.Request) error {
	var name, span string
	by, err := readOrder(w, r, jsonFields{"level": &name, "for": &span}, "level")
	if err != nil {
		return err
	}
	level, err := parseLogLevel(name)
	if err != nil {
		return err
	}
	length := defaultLogLevelSpan
	if span != "" {
		if length, err = time.ParseDuration(span); err != nil || length < minLogLevelSpan || length > maxLogLevelSpan {
			return refuse(invalid, "for: want a time from 1s to 24h, such as 10m, got %q", domain.Shorten(span))
		}
	}
	if err := by.Check(); err != nil {
		return err
	}
	before := s.opts.LogLevel.Level()
	s.opts.LogLevel.Change(level, length)
	shown := newShownLogLevel(s.opts.LogLevel)
	attrs := []any{"what", "log-level", "who", by.Who, "why", by.Why, "before", logLevelName(before), "after", shown.Level}
	if shown.Until != nil {
		attrs = append(attrs, "until", *shown.Until)
	}
	s.opts.Logger.WarnContext(r.Context(), "operator's order carried out", attrs...)
	writeJSON(w, http.StatusOK, shown)
	return nil
}

func parseLogLevel(name string) (slog.Level, error) {
	i := slices.IndexFunc(logLevels, func(l slog.Level) bool { return logLevelName(l) == name })
	if i < 0 {
		return 0, refuse(invalid, "level: want debug, info, warn or error, got %q", domain.Shorten(name))
	}
	return logLevels[i], nil
}

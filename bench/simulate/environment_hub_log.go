package simulate

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
)

// newLogger returns the logger of a hub. It writes errors to the trace.
func (h *hub) newLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&logLines{hub: h}, &slog.HandlerOptions{
		Level: slog.LevelError,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.TimeKey, "duration_ms", "stack":
				return slog.Attr{}
			}
			return a
		},
	}))
}

type logLines struct{ hub *hub }

func (l *logLines) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`error="panic: `)) {
		l.hub.sim.Fail(fmt.Errorf("%s panicked: %s", l.hub.who, line))
	}
	l.hub.sim.Log(l.hub.who + " says: " + strings.TrimSpace(string(bytes.ToValidUTF8(line, nil))))
	return len(line), nil
}

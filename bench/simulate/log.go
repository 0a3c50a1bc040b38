package simulate

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
)

// logger is that of a hub: what it takes for an error becomes a part of the trace.
func (h *hub) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(&logLines{h: h}, &slog.HandlerOptions{
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

type logLines struct{ h *hub }

func (l *logLines) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`error="panic: `)) {
		l.h.w.fail(fmt.Errorf("%s panicked: %s", l.h.who, line))
	}
	l.h.w.tell(l.h.who + " says: " + strings.TrimSpace(string(bytes.ToValidUTF8(line, nil))))
	return len(line), nil
}

package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/identity"
)

// A requestRecord collects what the log and the metrics record about a request. Only the goroutine
// that serves the request may use it.
type requestRecord struct {
	id      string
	attrs   []slog.Attr // attributes that the handler adds to the log line
	problem problemType
	err     error

	principal string // sender whose identity was verified; "" if none exists

	start    time.Time
	poll     *poll // parked request that this request resumes; nil if none exists
	isParked bool  // whether the request was parked and has no response yet

	span trace.Span // span of the request; nil if none exists
}

// note adds attributes to the log line of the request.
func (rec *requestRecord) note(attrs ...slog.Attr) { rec.attrs = append(rec.attrs, attrs...) }

// setPrincipal adds the verified sender to the log line: its subject or, if the subject is empty,
// its client. Records of orders use the same name.
func (rec *requestRecord) setPrincipal(p *identity.Principal) { rec.principal = p.RecordName("") }

type recordKey struct{}

// recordOf returns the record of the request to which ctx belongs.
func recordOf(ctx context.Context) *requestRecord {
	rec, _ := ctx.Value(recordKey{}).(*requestRecord)
	return rec
}

const requestIDHeader = "X-Request-Id"

// identify assigns an id to each request: the value of the header X-Request-Id if it is safe to
// log, otherwise a new id.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !isRequestID(id) {
			id = s.opts.NewRequestID()
		}
		rec := &requestRecord{id: id, start: s.opts.Clock()}
		if rec.poll = takePoll(r.Context()); rec.poll != nil {
			rec.id, rec.start = rec.poll.id, rec.poll.start
		}
		w.Header().Set(requestIDHeader, rec.id)
		ctx := context.WithValue(r.Context(), recordKey{}, rec)
		next.ServeHTTP(w, r.WithContext(s.startSpan(ctx, r, rec)))
	})
}

// isRequestID reports whether s consists of 1 to 128 characters of A-Z a-z 0-9 . _ -.
func isRequestID(s string) bool { return isWord(s, 128) }

// isWord reports whether s consists of 1 to limit characters of A-Z a-z 0-9 . _ -.
func isWord(s string, limit int) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return 1 <= len(s) && len(s) <= limit
}

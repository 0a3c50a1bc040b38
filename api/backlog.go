package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// These headers report the backlog of an actor, with every bundle and after every Dequeue: the
// number of events that wait behind the bundle, and the seconds that the oldest of them has
// waited. Headers, log and metrics call this the backlog. The events that wait, including those
// of the bundle, are called waiting.
const (
	backlogHeader    = "MessageHub-Backlog"
	backlogAgeHeader = "MessageHub-Backlog-Age"
)

// tellBacklog sets the headers. An age that is not known is left out.
func (s *Server) tellBacklog(h http.Header, b domain.Backlog) {
	h[backlogHeader] = []string{strconv.FormatInt(b.Events, 10)}
	if age, ok := s.ageOf(b); ok {
		h[backlogAgeHeader] = []string{strconv.FormatInt(age, 10)}
	}
}

// ageOf returns how long the oldest of b has waited, in seconds and rounded up; 0
// if nothing waits. It reports false if that is not known.
func (s *Server) ageOf(b domain.Backlog) (int64, bool) {
	if b.Events > 0 && b.Oldest.IsZero() {
		return 0, false
	}
	if b.Events == 0 {
		return 0, true
	}
	age := max(0, s.opts.Clock().Sub(b.Oldest)) // the clock of another node may be ahead
	return int64((age + time.Second - 1) / time.Second), true
}

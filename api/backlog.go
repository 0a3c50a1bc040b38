package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Headers that report the backlog of an actor in each response to a Peek or a Dequeue: the number
// of events that wait behind the bundle, and the age of the oldest such event in seconds. In
// headers, log and metrics, "backlog" excludes the events of the open bundle, and "waiting"
// includes them.
const (
	backlogHeader    = "MessageHub-Backlog"
	backlogAgeHeader = "MessageHub-Backlog-Age"
)

// setBacklogHeaders sets the headers for b. It omits the age if the age is unknown.
func (s *Server) setBacklogHeaders(h http.Header, b domain.Backlog) {
	h[backlogHeader] = []string{strconv.FormatInt(b.Events, 10)}
	if age, ok := s.ageOf(b); ok {
		h[backlogAgeHeader] = []string{strconv.FormatInt(age, 10)}
	}
}

// ageOf returns the age of the oldest event of b in seconds, rounded up, or 0 if no event waits. It
// returns false if the age is unknown.
func (s *Server) ageOf(b domain.Backlog) (int64, bool) {
	if b.Events > 0 && b.Oldest.IsZero() {
		return 0, false
	}
	if b.Events == 0 {
		return 0, true
	}
	age := max(0, s.opts.Clock().Sub(b.Oldest)) // the difference is negative if the clock of another node is ahead
	return int64((age + time.Second - 1) / time.Second), true
}

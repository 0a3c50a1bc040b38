package hubclient

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Problem is the response of a hub to a request that it refuses.
type Problem struct { //nolint:errname // problem is the word of RFC 9457
	Status   int     `json:"status"`
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Detail   string  `json:"detail"`
	Instance string  `json:"instance"` // id of the request, which the operators of the hub can look up
	Errors   []Fault `json:"errors"`

	// Accepted and Duplicates are set if the hub has stored all events except those in Errors.
	Accepted   *int `json:"accepted"`
	Duplicates *int `json:"duplicates"`

	RetryAfter time.Duration `json:"-"` // pause that the hub requests; 0 if the response has no Retry-After
}

// A Fault describes an error at one position in the body of a request.
type Fault struct {
	Pointer string `json:"pointer"` // RFC 6901
	Detail  string `json:"detail"`
}

// Index returns the index of the faulty element, if the body is a list. It returns -1 if Pointer
// does not start with an index.
func (f *Fault) Index() int {
	first, _, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
	index, err := strconv.Atoi(first)
	if err != nil || index < 0 {
		return -1
	}
	return index
}

// shownFaults is the maximum number of faults in the text of an error.
const shownFaults = 10

// Error returns the problem in one line.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%d)", p.Title, p.Status)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, f := range p.Errors[:min(len(p.Errors), shownFaults)] {
		text += fmt.Sprintf("; %s: %s", strings.TrimPrefix(f.Pointer, "/"), f.Detail)
	}
	if more := len(p.Errors) - shownFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	if id := strings.TrimPrefix(p.Instance, "urn:messagehub:request:"); id != "" && p.Status >= http.StatusInternalServerError {
		text += " Request " + id + "."
	}
	return text
}

// IsTemporary reports whether the same request may succeed later.
func (p *Problem) IsTemporary() bool {
	switch p.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// isGone reports whether the hub refused a request because its bundle is not open.
func (p *Problem) isGone() bool {
	return p.Status == http.StatusNotFound || p.Status == http.StatusGone
}

const (
	maxProblem = maxResponse
	// maxRetryAfter is the maximum pause that is accepted from Retry-After.
	maxRetryAfter = 24 * time.Hour
)

// ReadProblem reads the problem from the body of a response. It does not close the body. If the
// body is not a problem, the result describes the response.
func ReadProblem(resp *http.Response) *Problem {
	p := new(Problem)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || json.Unmarshal(body, p) != nil {
		*p = Problem{Detail: fmt.Sprintf("The answer is no problem document; is this a hub? It begins %q.", body[:min(len(body), 80)])}
	}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		*p = Problem{Detail: fmt.Sprintf("The answer redirects to %q, which is not followed; if that is the hub, use its URL.", to)}
	}
	p.Status = resp.StatusCode
	p.Title = cmp.Or(p.Title, http.StatusText(resp.StatusCode), "The request failed")
	p.RetryAfter = retryAfter(resp.Header)
	return p
}

// retryAfter returns the pause in the header Retry-After, which contains a number of seconds or a
// date. A date is compared with the Date of the response, because the clock of this machine may be
// wrong.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	seconds, err := strconv.Atoi(text)
	pause := time.Duration(seconds) * time.Second
	if err != nil {
		date, err := http.ParseTime(text)
		now, errNow := http.ParseTime(h.Get("Date"))
		if err != nil || errNow != nil {
			return 0
		}
		pause = date.Sub(now)
	}
	if pause < 0 || pause > maxRetryAfter || seconds > int(maxRetryAfter/time.Second) {
		return 0
	}
	return pause
}

package brokerclient

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

// A Problem is the answer of a hub to a request that it refuses.
type Problem struct { //nolint:errname // problem is the word of RFC 9457
	Status   int     `json:"status"`
	Type     string  `json:"type"`
	Title    string  `json:"title"`
	Detail   string  `json:"detail"`
	Instance string  `json:"instance"` // identifies the request for the operators of the hub
	Errors   []Fault `json:"errors"`

	RetryAfter time.Duration `json:"-"` // 0: the answer has none
}

// A Fault is what is wrong at one place of a request.
type Fault struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
}

// Error returns the problem in one line.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%s (%d)", p.Title, p.Status)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, f := range p.Errors {
		text += fmt.Sprintf("; %s: %s", strings.TrimPrefix(f.Pointer, "/"), f.Detail)
	}
	if id := strings.TrimPrefix(p.Instance, "urn:messagehub:request:"); id != "" && p.Status >= http.StatusInternalServerError {
		text += " Request " + id + "."
	}
	return text
}

const maxProblem = 1 << 20 // bytes

func readProblem(resp *http.Response) error {
	p := new(Problem)
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" || json.Unmarshal(body, p) != nil {
		*p = Problem{Detail: fmt.Sprintf("The answer is no problem document; is this a hub? It begins %q.", body[:min(len(body), 80)])}
	}
	p.Status = resp.StatusCode
	p.Title = cmp.Or(p.Title, http.StatusText(resp.StatusCode), "The request failed")
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 && seconds < int(maxRetryAfter.Seconds()) {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

// maxRetryAfter is the limit for a Retry-After that is believed.
const maxRetryAfter = 24 * time.Hour

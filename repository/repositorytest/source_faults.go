package repositorytest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing/iotest"
)

// SourceFaults break the requests that a store sends by HTTP. They are a transport of their own. They are
// safe for concurrent use.
type SourceFaults struct {
	Next interface {
		Do(*http.Request) (*http.Response, error)
	}

	mu       sync.Mutex
	throttle int    // requests that are answered 503
	status   int    // of all answers; -1: no answer comes
	last     []byte // body of the last listing
	repeats  bool
	cuts     bool
}

// Throttle has the next n requests answered 503.
func (f *SourceFaults) Throttle(n int) { f.setFault(func() { f.throttle = n }) }

// Answer has all requests answered with a status; with -1 they fail, and with 0 they are carried out.
func (f *SourceFaults) Answer(status int) { f.setFault(func() { f.status = status }) }

// RepeatNext has the next listing answered as the last one.
func (f *SourceFaults) RepeatNext() { f.setFault(func() { f.repeats = true }) }

// CutNext has the next answer with a body cut.
func (f *SourceFaults) CutNext() { f.setFault(func() { f.cuts = true }) }

func (f *SourceFaults) setFault(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// RoundTrip implements [http.RoundTripper].
func (f *SourceFaults) RoundTrip(r *http.Request) (*http.Response, error) { return f.Do(r) }

// Do sends a request, or fails as the faults say.
func (f *SourceFaults) Do(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.status < 0:
		return nil, errors.New("connection refused")
	case f.status > 0:
		return answerOf(r, f.status, nil), nil
	case f.throttle > 0:
		f.throttle--
		return answerOf(r, http.StatusServiceUnavailable, nil), nil
	}
	isListing := r.Method == http.MethodGet
	if isListing && f.repeats {
		f.repeats = false
		return answerOf(r, http.StatusOK, f.last), nil
	}
	answer, err := f.Next.Do(r)
	if err != nil || !isListing {
		return answer, err
	}
	f.last, err = io.ReadAll(answer.Body)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(f.last))
	if f.cuts {
		f.cuts = false
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(f.last[:len(f.last)/2]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	}
	return answer, err
}

func answerOf(r *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

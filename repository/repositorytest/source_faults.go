package repositorytest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing/iotest"
)

// A SourceFaults is an HTTP transport that breaks the requests of a store. It is safe for concurrent
// use.
type SourceFaults struct {
	Next interface {
		Do(*http.Request) (*http.Response, error)
	}

	mu       sync.Mutex
	throttle int    // number of requests to fail with 503
	status   int    // status of all responses; 0 without a fault, -1 for no response
	last     []byte // body of the last listing
	repeats  bool
	cuts     bool
}

// Throttle makes the next n requests fail with 503.
func (f *SourceFaults) Throttle(n int) { f.setFault(func() { f.throttle = n }) }

// Answer makes all requests fail with a status. With -1, they receive no response. With 0, they succeed
// again.
func (f *SourceFaults) Answer(status int) { f.setFault(func() { f.status = status }) }

// RepeatNext makes the next listing return the body of the last one.
func (f *SourceFaults) RepeatNext() { f.setFault(func() { f.repeats = true }) }

// CutNext truncates the body of the next response that has one.
func (f *SourceFaults) CutNext() { f.setFault(func() { f.cuts = true }) }

func (f *SourceFaults) setFault(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// RoundTrip implements [http.RoundTripper].
func (f *SourceFaults) RoundTrip(r *http.Request) (*http.Response, error) { return f.Do(r) }

// Do sends a request, or breaks it.
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

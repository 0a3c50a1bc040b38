// Package faulty breaks calls to Cosmos for tests.
//
// A [Transport] is between the Cosmos client and the store, so the code above it runs unchanged. It
// counts the calls for documents and breaks selected calls, either before the store carries out the
// call or afterwards. The faults are known failures of the service and of the connection. A test
// breaks every call of an operation once, in every way, and then checks the content of the store.
package faulty

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A Fault is a way to break a call.
type Fault int

// The faults. A fault with the suffix After, and Truncated, break the response to a call that was
// carried out. With all other faults, the call is not carried out.
const (
	None                Fault = iota
	RequestLost               // the connection breaks before the request arrives
	ReplyLostAfter            // the connection breaks before the reply arrives
	Throttled                 // 429, wait 1 ms
	RetryWith                 // 449
	TimeoutAfter              // 408
	Unavailable               // 503
	UnavailableAfter          // 503 from a front end that does not know the outcome
	ForeignPrecondition       // 412 although the caller's condition holds
	Timeout                   // 408; the call was not carried out
	Gone                      // 410: the partition is being split
	Failed                    // 500
	FailedAfter               // 500 from a front end that does not know the outcome
	Truncated                 // the response breaks off in the middle
	Moving                    // 403/3: the write region is changing
	SessionBehind             // 404/1002: the replica does not have the writes of the session yet
	Forbidden                 // 403, once
)

var names = [...]string{
	"none", "request lost", "reply lost after commit", "429", "449",
	"408 after commit", "503", "503 after commit", "foreign 412",
	"408", "410", "500", "500 after commit", "truncated", "403/3", "404/1002", "403",
}

func (f Fault) String() string { return names[f] }

// CommonFaults returns the common ways to break a call.
func CommonFaults() []Fault {
	return []Fault{
		RequestLost, ReplyLostAfter, Throttled, RetryWith, TimeoutAfter,
		Unavailable, UnavailableAfter, ForeignPrecondition,
	}
}

// RareFaults returns rarer faults. Callers treat each like one of the common faults.
func RareFaults() []Fault { return []Fault{Timeout, Gone, Failed, FailedAfter, Truncated, Forbidden} }

// IsAfter reports whether the fault breaks the response to a call that is carried out.
func (f Fault) IsAfter() bool {
	switch f {
	case ReplyLostAfter, TimeoutAfter, UnavailableAfter, FailedAfter, Truncated:
		return true
	default:
		return false
	}
}

// ErrLost is the error of a broken connection.
var ErrLost = errors.New("faulty: connection lost")

// A Doer sends a request, as the transport of the Cosmos client does.
type Doer interface {
	// Do sends req and returns the response.
	Do(*http.Request) (*http.Response, error)
}

// A Transport forwards calls to Next, and breaks selected calls. It is safe for concurrent use.
type Transport struct {
	Next Doer

	mu     sync.Mutex
	calls  int
	choose func(call int, req *http.Request) Fault
	fired  int
}

// Break calls choose for every following call for documents, and breaks the call by the fault that
// choose returns. Calls are counted from 1. A nil choose breaks no call.
func (t *Transport) Break(choose func(call int, req *http.Request) Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls, t.fired, t.choose = 0, 0, choose
}

// BreakOne breaks the n-th call from now, once.
func (t *Transport) BreakOne(n int, f Fault) {
	t.Break(func(call int, _ *http.Request) Fault {
		if call == n {
			return f
		}
		return None
	})
}

// CrashAt simulates the crash of a node at its n-th call from now: f breaks this call, and all later
// requests are lost. Fired returns 0 if the node made fewer calls.
func (t *Transport) CrashAt(n int, f Fault) {
	t.Break(func(call int, _ *http.Request) Fault {
		switch {
		case call < n:
			return None
		case call == n:
			return f
		}
		return RequestLost
	})
}

// Calls returns the number of calls for documents since Break.
func (t *Transport) Calls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls
}

// Fired returns the number of broken calls since Break.
func (t *Transport) Fired() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fired
}

// Do implements the transport of the Cosmos client.
func (t *Transport) Do(req *http.Request) (*http.Response, error) {
	return t.drawFault(req).Do(t.Next, req)
}

// Do sends req to next and breaks the call.
func (f Fault) Do(next Doer, req *http.Request) (*http.Response, error) {
	switch f {
	case None:
	case RequestLost:
		return nil, ErrLost
	case ReplyLostAfter:
		if resp, err := next.Do(req); err == nil {
			_ = resp.Body.Close()
		}
		return nil, ErrLost
	case Throttled:
		return newResponse(req, http.StatusTooManyRequests, "3200", nil), nil
	case RetryWith:
		return newResponse(req, 449, "", nil), nil
	case TimeoutAfter:
		return cutReply(next, req, http.StatusRequestTimeout)
	case Unavailable:
		return newResponse(req, http.StatusServiceUnavailable, "", nil), nil
	case UnavailableAfter:
		return cutReply(next, req, http.StatusServiceUnavailable)
	case ForeignPrecondition:
		return failPrecondition(req)
	case Timeout:
		return newResponse(req, http.StatusRequestTimeout, "", nil), nil
	case Gone:
		return newResponse(req, http.StatusGone, "1002", nil), nil
	case Failed:
		return newResponse(req, http.StatusInternalServerError, "", nil), nil
	case FailedAfter:
		return cutReply(next, req, http.StatusInternalServerError)
	case Truncated:
		return sendTruncated(next, req)
	case Moving:
		return newResponse(req, http.StatusForbidden, "3", nil), nil
	case SessionBehind:
		return newResponse(req, http.StatusNotFound, "1002", nil), nil
	case Forbidden:
		return newResponse(req, http.StatusForbidden, "", nil), nil
	}
	return next.Do(req)
}

func (t *Transport) drawFault(req *http.Request) Fault {
	if !IsForDocuments(req) {
		return None
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	if t.choose == nil {
		return None
	}
	f := t.choose(t.calls, req)
	if f == ForeignPrecondition && !isWrite(req) {
		f = None // a read has no condition
	}
	if f != None {
		t.fired++
	}
	return f
}

// IsForDocuments reports whether a request reads or writes documents. Other requests read properties of
// the account. The client sends them in a goroutine that may outlive its call, so a test that delays
// them may never end.
func IsForDocuments(req *http.Request) bool { return strings.Contains(req.URL.Path, "/docs") }

func isWrite(req *http.Request) bool {
	return req.Method != http.MethodGet && req.Header.Get("x-ms-documentdb-query") == "" &&
		req.Header.Get("x-ms-documentdb-isquery") == ""
}

// sendTruncated sends a request and returns the first half of the response, after which the connection
// breaks.
func sendTruncated(next Doer, req *http.Request) (*http.Response, error) {
	resp, err := next.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), brokenOff{}))
	return resp, nil
}

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func cutReply(next Doer, req *http.Request, status int) (*http.Response, error) {
	resp, err := next.Do(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	return newResponse(req, status, "", nil), nil
}

// failPrecondition returns a 412 response. In the response to a batch, the first operation has failed.
func failPrecondition(req *http.Request) (*http.Response, error) {
	if req.Header.Get("x-ms-cosmos-is-batch-request") == "" {
		return newResponse(req, http.StatusPreconditionFailed, "", nil), nil
	}
	var operations []json.RawMessage
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = json.Unmarshal(body, &operations)
	}
	if err != nil {
		return nil, fmt.Errorf("faulty: the body of a batch: %w", err)
	}
	results := make([]map[string]any, len(operations))
	for i := range results {
		results[i] = map[string]any{"statusCode": http.StatusFailedDependency, "requestCharge": 0}
	}
	results[0]["statusCode"] = http.StatusPreconditionFailed
	encoded, err := json.Marshal(results)
	if err != nil {
		return nil, err
	}
	return newResponse(req, http.StatusMultiStatus, "", encoded), nil
}

func newResponse(req *http.Request, status int, substatus string, body []byte) *http.Response {
	if body == nil {
		body = []byte(`{"code":"Faulty","message":"broken on purpose"}`)
	}
	resp := &http.Response{
		StatusCode: status,
		Status:     fmt.Sprintf("%d %s", status, http.StatusText(status)),
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":        {"application/json"},
			"X-Ms-Request-Charge": {"0"},
			"X-Ms-Activity-Id":    {"00000000-0000-0000-0000-000000000000"},
		},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}
	if status == http.StatusTooManyRequests {
		resp.Header.Set("x-ms-retry-after-ms", "1")
	}
	if substatus != "" {
		resp.Header.Set("x-ms-substatus", substatus)
	}
	return resp
}

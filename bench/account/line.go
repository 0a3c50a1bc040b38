package account

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// A Line sends requests to an account and counts them. It is safe for concurrent
// use.
type Line struct {
	next     policy.Transporter
	requests atomic.Int64
	refused  atomic.Int64
	micro    atomic.Int64
	sent     atomic.Int64
	received atomic.Int64
}

// A Count holds the totals over the requests of a Line.
type Count struct {
	Requests int64   // requests that are charged
	Refused  int64   // charged requests that were refused with 429
	Units    float64 // charged request units
	Sent     int64   // bytes of the bodies of requests
	Received int64   // bytes of the bodies of responses that were read
}

// Count returns the totals over all requests so far.
func (l *Line) Count() Count {
	return Count{
		Requests: l.requests.Load(), Refused: l.refused.Load(), Units: float64(l.micro.Load()) / 1e6,
		Sent: l.sent.Load(), Received: l.received.Load(),
	}
}

// Since returns the difference between c and an earlier Count.
func (c Count) Since(before Count) Count {
	return Count{
		Requests: c.Requests - before.Requests, Refused: c.Refused - before.Refused, Units: c.Units - before.Units,
		Sent: c.Sent - before.Sent, Received: c.Received - before.Received,
	}
}

// Do sends one request. It does not count requests for the properties of the account, which are not
// charged.
func (l *Line) Do(req *http.Request) (*http.Response, error) {
	answer, err := l.next.Do(req)
	if err != nil {
		return nil, err
	}
	charge, err := strconv.ParseFloat(answer.Header.Get("x-ms-request-charge"), 64)
	if err == nil {
		l.countRequest(req, answer, charge)
	}
	return answer, nil
}

func (l *Line) countRequest(req *http.Request, answer *http.Response, charge float64) {
	l.requests.Add(1)
	l.micro.Add(int64(charge * 1e6))
	l.sent.Add(max(0, req.ContentLength))
	if answer.StatusCode == http.StatusTooManyRequests {
		l.refused.Add(1)
	}
	answer.Body = &countingBody{ReadCloser: answer.Body, to: &l.received}
}

// A countingBody counts the bytes that are read from a body.
type countingBody struct {
	io.ReadCloser
	to *atomic.Int64
}

func (c *countingBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.to.Add(int64(n))
	return n, err
}

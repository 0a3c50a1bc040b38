package account

import (
	"io"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// A Line carries requests to an account and counts them. It is safe for use by many
// goroutines.
type Line struct {
	next     policy.Transporter
	requests atomic.Int64
	refused  atomic.Int64
	micro    atomic.Int64
	sent     atomic.Int64
	received atomic.Int64
}

// A Count is what has gone over a Line.
type Count struct {
	Requests int64   // for documents
	Refused  int64   // of those, with 429
	Units    float64 // request units, as the account charged them
	Sent     int64   // bytes of the bodies of requests
	Received int64   // bytes of the bodies of answers that were read
}

// Count returns what has gone over l so far.
func (l *Line) Count() Count {
	return Count{
		Requests: l.requests.Load(), Refused: l.refused.Load(), Units: float64(l.micro.Load()) / 1e6,
		Sent: l.sent.Load(), Received: l.received.Load(),
	}
}

// Since is what has gone over the line since before.
func (c Count) Since(before Count) Count {
	return Count{
		Requests: c.Requests - before.Requests, Refused: c.Refused - before.Refused, Units: c.Units - before.Units,
		Sent: c.Sent - before.Sent, Received: c.Received - before.Received,
	}
}

// Do carries one request. Those that are not charged, for the account itself, are
// not counted.
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
	answer.Body = &counted{ReadCloser: answer.Body, to: &l.received}
}

// counted is a body that adds up what is read of it.
type counted struct {
	io.ReadCloser
	to *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.to.Add(int64(n))
	return n, err
}

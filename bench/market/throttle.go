package market

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/load"
)

// A Throttle rejects every request for the partitions of one recipient, as Cosmos DB does when
// their throughput is used up.
type Throttle struct {
	Recipient string
	Wait      time.Duration // retry delay in the responses

	on      atomic.Bool
	refused atomic.Int64
}

// Refused returns the number of requests that the Throttle has rejected.
func (t *Throttle) Refused() int64 { return t.refused.Load() }

// TurnOnAt returns a stream that turns the Throttle on at a time of a plan.
func (t *Throttle) TurnOnAt(at time.Duration) load.Stream { return t.switchStream(at, true) }

// TurnOffBefore returns a stream that turns the Throttle off one millisecond before a plan ends, so
// that no retry is throttled when the plan ends.
func (t *Throttle) TurnOffBefore(end time.Duration) load.Stream {
	return t.switchStream(end-time.Millisecond, false)
}

func (t *Throttle) switchStream(at time.Duration, on bool) load.Stream {
	const never = 1000 * time.Hour
	return load.Stream{Arrivals: load.Every(never, at), Task: func(context.Context) load.Outcome {
		t.on.Store(on)
		return load.Outcome{}
	}}
}

// Around returns a transport that throttles requests before they reach next.
func (t *Throttle) Around(next policy.Transporter) policy.Transporter {
	return &throttledLine{t, next}
}

type throttledLine struct {
	*Throttle
	next policy.Transporter
}

// Do rejects a request with 429, or sends it to the account.
func (t *throttledLine) Do(req *http.Request) (*http.Response, error) {
	if !t.on.Load() || !t.isNamed(req.Header.Get("x-ms-documentdb-partitionkey")) {
		return t.next.Do(req)
	}
	t.refused.Add(1)
	body := []byte(`{"code":"TooManyRequests","message":"the partition is throttled"}`)
	return &http.Response{
		StatusCode: http.StatusTooManyRequests,
		Status:     "429 Too Many Requests",
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":        {"application/json"},
			"X-Ms-Retry-After-Ms": {strconv.FormatInt(t.Wait.Milliseconds(), 10)},
			"X-Ms-Substatus":      {"3200"},
			"X-Ms-Request-Charge": {"0"},
		},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

// isNamed reports whether a JSON partition key belongs to the recipient: it is the recipient's
// name, or begins with the name and a bar.
func (t *throttledLine) isNamed(key string) bool {
	rest, ok := strings.CutPrefix(key, `["`+t.Recipient)
	return ok && (strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "|"))
}

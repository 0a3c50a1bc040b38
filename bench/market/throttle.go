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

// A Throttle answers every request for the partitions of one recipient as Cosmos does
// when their throughput is used up.
type Throttle struct {
	Recipient string
	Wait      time.Duration // what throttled callers receive

	on      atomic.Bool
	refused atomic.Int64
}

// Refused is how many requests it has answered.
func (t *Throttle) Refused() int64 { return t.refused.Load() }

// TurnOnAt returns a stream that turns it on at a time of a plan.
func (t *Throttle) TurnOnAt(at time.Duration) load.Stream { return t.switchStream(at, true) }

// TurnOffBefore turns it off one millisecond before a plan ends, so that no request of the plan
// waits for it.
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

// Around puts it between a hub and its account.
func (t *Throttle) Around(next policy.Transporter) policy.Transporter {
	return &throttledLine{t, next}
}

type throttledLine struct {
	*Throttle
	next policy.Transporter
}

// Do answers for the account, or lets it answer.
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

// isNamed reports whether a partition key, as JSON, is the recipient's: its name, or that, a bar
// and what distinguishes its partitions.
func (t *throttledLine) isNamed(key string) bool {
	rest, ok := strings.CutPrefix(key, `["`+t.Recipient)
	return ok && (strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "|"))
}

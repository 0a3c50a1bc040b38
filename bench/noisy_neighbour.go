package bench

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

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
)

// noisyNeighbour throttles the partitions of one recipient, altogether, while it is
// sent to and peeks. It asks what the others notice of it: the same others are measured
// with it and without it, in turns, each time on a fresh hub and account.
func noisyNeighbour(ctx context.Context, r *run) error {
	return r.noisyNeighbour(ctx, market{
		groups: []group{
			{size: 100, events: 1000, batch: 20, period: time.Second},
			{kind: "noisy ", size: 1, events: 100, batch: 20, period: 500 * time.Millisecond, atOnce: 20},
		},
		lasts: pick(r, 40*time.Second, 10*time.Second), settle: pick(r, 10*time.Second, 2*time.Second),
		has: throughput{catalog: 40_000, cabinet: 30_000, bundles: 30_000},
	}, pick(r, 5, 3))
}

func (r *run) noisyNeighbour(ctx context.Context, m market, rounds int) error {
	kinds := []string{"save", "peek", "dequeue"}
	with, without := make(map[string][]time.Duration), make(map[string][]time.Duration)
	noise := &throttled{partition: "noisy-0000", wait: 100 * time.Millisecond}
	var others stock
	failures := 0 // of the others' operations
	for round := range 2 * rounds {
		today, to := m, with
		step := "with the noisy one"
		if round%2 == 0 {
			today.groups, to, step = m.groups[:1], without, "without it"
		} else {
			today.around = noise.around
			today.beside = []load.Stream{noise.from(m.settle / 2), noise.until(m.lasts)}
		}
		d, err := r.hold(ctx, today, step, float64(round)/float64(2*rounds), float64(round+1)/float64(2*rounds))
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			took, err := p99(d, kind)
			if err != nil {
				return err
			}
			to[kind] = append(to[kind], took)
		}
		others.add(d.stocks[0])
		for kind, n := range d.result.Failures() {
			if !strings.HasPrefix(kind, "noisy ") {
				failures += n
			}
		}
		if round == 2*rounds-1 {
			r.generator(d.result)
			r.accounted("noisy ", d.stocks[1])
		}
	}
	for _, kind := range kinds {
		before, beside := median(without[kind], inMS), median(with[kind], inMS)
		r.figure("hub", kind+" p99 without the noisy one", before, "ms", nil)
		r.figure("hub", kind+" p99 with it", beside, "ms", nil)
		r.figure("hub", kind+" p99 with it", beside/before, "times", figure.AtMost(1.25))
	}
	r.figure("hub", "requests refused to the noisy one", float64(noise.refused.Load()), "", nil)
	r.figure("hub", "operations of the others that failed", float64(failures), "", figure.AtMost(0))
	r.accounted("", others)
	return nil
}

// throttled answers every request for the partitions of one recipient as Cosmos does
// when their throughput is used up.
type throttled struct {
	partition string        // the recipient; its other partitions begin with it and a bar
	wait      time.Duration // what callers are told
	on        atomic.Bool
	refused   atomic.Int64
}

// from turns it on at a time of a plan.
func (t *throttled) from(at time.Duration) load.Stream { return t.turn(at, true) }

// until turns it off just before a plan ends, so that nobody has to be waited for.
func (t *throttled) until(end time.Duration) load.Stream { return t.turn(end-time.Millisecond, false) }

func (t *throttled) turn(at time.Duration, on bool) load.Stream {
	const never = 1000 * time.Hour
	return load.Stream{Arrivals: load.Every(never, at), Task: func(context.Context) load.Outcome {
		t.on.Store(on)
		return load.Outcome{}
	}}
}

// around puts it between a hub and its account.
func (t *throttled) around(next policy.Transporter) policy.Transporter {
	return &throttledLine{t, next}
}

type throttledLine struct {
	*throttled
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
			"X-Ms-Retry-After-Ms": {strconv.FormatInt(t.wait.Milliseconds(), 10)},
			"X-Ms-Substatus":      {"3200"},
			"X-Ms-Request-Charge": {"0"},
		},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

// isNamed reports whether a partition key, as JSON, is one of the recipient's.
func (t *throttledLine) isNamed(key string) bool {
	rest, ok := strings.CutPrefix(key, `["`+t.partition)
	return ok && (strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "|"))
}

package node_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// BenchmarkTraces compares a node that records and sends every span with a node
// that records none. An operation is a Save of 20 events, and a Peek and a
// Dequeue of these events, on the durable engine. The nodes execute operations
// in turn, so that noise affects both.
//
// peek-p50 is the ratio of the median Peek durations, with traces to without.
// peek-p99 is the ratio of the 99th percentiles; it is computed for each block
// of operations, and the median of the blocks is reported, so that a pause of
// the machine affects only one block. mallocs-off and mallocs-on are the
// allocations of one operation, including those of the client. 3000 operations
// take one or two minutes:
//
//	go test ./cmd/node -run '^$' -bench 'BenchmarkTraces$' -benchtime 3000x
func BenchmarkTraces(b *testing.B) {
	const warmUp = 50
	r := newSpanReceiver(b)
	on := startTraced(b, r, settings(b.TempDir()))
	off, _ := start(b, settings(b.TempDir()), node.Options{})
	nodes := [2]*node.Node{off, on.Node}
	var peeks, dequeues [2][]time.Duration
	var allocated [2]uint64
	for i := range b.N + warmUp {
		if i == warmUp {
			b.ResetTimer()
		}
		for k := range nodes {
			k = (k + i) % 2
			before := mallocs()
			peek, dequeue := tracedRound(b, nodes[k], fmt.Sprintf("actor-%d", i%20), i)
			if i >= warmUp {
				peeks[k], dequeues[k] = append(peeks[k], peek), append(dequeues[k], dequeue)
				allocated[k] += mallocs() - before
			}
		}
	}
	b.StopTimer()
	for name, times := range map[string][2][]time.Duration{"peek": peeks, "dequeue": dequeues} {
		b.ReportMetric(medianRatio(times, len(times[0]), 50), name+"-p50")
		b.ReportMetric(medianRatio(times, blockOf(len(times[0])), 99), name+"-p99")
		b.ReportMetric(float64(quantile(times[1], 50).Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(quantile(times[1], 99).Microseconds())/1000, name+"-p99-ms")
	}
	b.ReportMetric(float64(allocated[0])/float64(b.N), "mallocs-off")
	b.ReportMetric(float64(allocated[1])/float64(b.N), "mallocs-on")
	on.stop()
}

// blockOf returns the size of the blocks into which n operations are divided:
// at most ten blocks of at least 200 operations. Two operations of such a block
// exceed its 99th percentile.
func blockOf(n int) int { return max(n/10, min(n, 200)) }

// medianRatio computes a percentile of each block of times[0] and of times[1],
// divides the second by the first, and returns the median of the ratios.
func medianRatio(times [2][]time.Duration, block, percent int) float64 {
	var ratios []float64
	for begin := 0; begin+block <= len(times[0]); begin += block {
		without, with := quantile(times[0][begin:begin+block], percent), quantile(times[1][begin:begin+block], percent)
		ratios = append(ratios, float64(with)/float64(without))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func quantile(all []time.Duration, percent int) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)*percent/100, len(all)-1)]
}

// tracedRound saves, peeks and dequeues 20 events. It returns how long the Peek
// and the Dequeue took.
func tracedRound(b *testing.B, n *node.Node, actor string, round int) (peek, dequeue time.Duration) {
	var events []string
	for i := range 20 {
		events = append(events, fmt.Sprintf(`{"id":"%08x-0000-4000-8000-%012x","recipient":%q,"origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1}`, round, i, actor))
	}
	tracedCall(b, http.MethodPost, n.URL()+"/v1/data-available", actor, domainTrace, "["+strings.Join(events, ",")+"]", 202)
	began := time.Now()
	id := tracedCall(b, http.MethodGet, n.URL()+"/v1/peek", actor, actorTrace, "", 200)
	peek = time.Since(began)
	began = time.Now()
	tracedCall(b, http.MethodDelete, n.URL()+"/v1/dequeue/"+id, actor, actorTrace, "", 200)
	return peek, time.Since(began)
}

func tracedCall(b *testing.B, method, url, actor, trace, body string, want int) string {
	req, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(body))
	require.NoError(b, err)
	req.Header["X-Actor-Id"], req.Header["Traceparent"], req.Header["Content-Type"] = []string{actor}, []string{parentOf(trace)}, []string{"application/json"}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	require.Equal(b, want, resp.StatusCode)
	return resp.Header.Get("MessageId")
}

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

// BenchmarkTraces compares a node that records and sends every span with one that records none, in turns, so that
// both have the same noise. An operation is a Save of 20 events and a Peek and a Dequeue of them, on the durable engine.
// peek-p99 and dequeue-p99 are the times with traces divided by those without, mallocs the allocations of one operation
// besides those without traces, the client's included.
func BenchmarkTraces(b *testing.B) {
	r := newSpanReceiver(b)
	on := startTraced(b, r, settings(b.TempDir()))
	off, _ := start(b, settings(b.TempDir()), node.Options{})
	nodes := [2]*node.Node{off, on.Node}
	var times [2]struct {
		peek, dequeue []time.Duration
		mallocs       uint64
	}
	for i := range b.N + 50 {
		for k := range nodes {
			k = (k + i) % 2
			before := mallocs()
			peek, dequeue := tracedRound(b, nodes[k], fmt.Sprintf("actor-%d", i%20), i)
			if i >= 50 { // the first are slow
				times[k].peek, times[k].dequeue = append(times[k].peek, peek), append(times[k].dequeue, dequeue)
				times[k].mallocs += mallocs() - before
			}
		}
	}
	for name, of := range map[string]func(k int) []time.Duration{
		"peek":    func(k int) []time.Duration { return times[k].peek },
		"dequeue": func(k int) []time.Duration { return times[k].dequeue },
	} {
		for _, q := range []int{50, 99} {
			without, with := quantile(of(0), q), quantile(of(1), q)
			b.ReportMetric(float64(with)/float64(without), fmt.Sprintf("%s-p%d", name, q))
			b.ReportMetric(float64(with.Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, q))
		}
	}
	b.ReportMetric(float64(times[0].mallocs)/float64(b.N), "mallocs-off")
	b.ReportMetric(float64(times[1].mallocs)/float64(b.N), "mallocs-on")
	on.stop()
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func quantile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[min(len(all)*percent/100, len(all)-1)]
}

// tracedRound saves, peeks and dequeues 20 events, and returns how long the last two have taken.
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

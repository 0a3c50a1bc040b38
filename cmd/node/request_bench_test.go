package node_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/node"
)

// zeros returns a reader of n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// BenchmarkContentOnRequest peeks a bundle of 51,200 events, for which the
// domain creates 5 MB or 50 MB of content. The memory used must not depend on
// the size. domain-ms is the time that the domain needs, from receiving the
// request to the end of the content. hub-ms is the remaining time until the
// actor has the complete body. heap-MB is the growth of the heap during the
// Peek.
func BenchmarkContentOnRequest(b *testing.B) {
	for _, megabytes := range []int64{5, 50} {
		b.Run(fmt.Sprintf("%dMB", megabytes), func(b *testing.B) { contentOnRequest(b, megabytes<<20) })
	}
}

func contentOnRequest(b *testing.B, size int64) {
	n, _ := start(b, withListeners(b.TempDir()), node.Options{})
	charges := newCharges(b, n)
	ctx, end := context.WithCancel(b.Context())
	defer end()
	var took atomic.Int64
	var domains sync.WaitGroup
	defer domains.Wait()
	defer end()
	domains.Go(func() {
		_ = charges.Serve(ctx, func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
			began := time.Now()
			ids, err := r.EventIDs(ctx)
			if err != nil || len(ids) != 51_200 {
				return nil, fmt.Errorf("%d ids: %w", len(ids), err)
			}
			return &timedReader{zeros(size), began, &took}, nil
		})
	})
	var whole time.Duration
	var highest uint64
	b.StopTimer()
	for i := range b.N {
		actor := fmt.Sprintf("actor-%d", i)
		fillOrigin(b, n.URL(), actor, "Charges", 51_200)
		runtime.GC()
		before := heapBytes()
		over := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() { highest = max(highest, highestHeap(over)-before) })
		b.StartTimer()
		began := time.Now()
		length := peekAll(b, n.URL(), actor)
		whole += time.Since(began)
		b.StopTimer()
		close(over)
		watching.Wait()
		require.EqualValues(b, size, length)
	}
	b.ReportMetric(float64(time.Duration(took.Load()).Milliseconds())/float64(b.N), "domain-ms")
	b.ReportMetric(float64((whole-time.Duration(took.Load())).Milliseconds())/float64(b.N), "hub-ms")
	b.ReportMetric(float64(highest)/1e6, "heap-MB")
}

// A timedReader measures the time from began until all content was read, and
// adds it to took.
type timedReader struct {
	io.Reader
	began time.Time
	took  *atomic.Int64
}

func (t *timedReader) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err != nil {
		t.took.Add(int64(time.Since(t.began)))
	}
	return n, err
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// highestHeap measures the heap every 5 milliseconds until over is closed, and
// returns the maximum.
func highestHeap(over <-chan struct{}) (highest uint64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		highest = max(highest, heapBytes())
		select {
		case <-tick.C:
		case <-over:
			return highest
		}
	}
}

// peekAll peeks an actor's bundle, and returns the length of the body.
func peekAll(b *testing.B, url, actor string) int64 {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url+"/v1/peek", http.NoBody)
	require.NoError(b, err)
	req.Header.Set("X-Actor-Id", actor)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, resp.StatusCode)
	length, err := io.Copy(io.Discard, resp.Body)
	require.NoError(b, err)
	require.NoError(b, resp.Body.Close())
	return length
}

package embedded_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// serveLoopback serves a durable namespace on a loopback port, so that benchmarks include TCP and fsync. It returns a
// function that creates clients.
func serveLoopback(b *testing.B, entities embedded.Entities) func() *azservicebus.Client {
	b.Helper()
	n := openNamespace(b, embedded.Options{Dir: b.TempDir(), Entities: entities})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, listener, embedded.ServeOptions{}) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-served)
	})
	return func() *azservicebus.Client {
		c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(listener.Addr().String()), nil)
		require.NoError(b, err)
		b.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}
}

func queues(names ...string) embedded.Entities {
	var e embedded.Entities
	for _, name := range names {
		e.Queues = append(e.Queues, embedded.QueueSetup{Name: name})
	}
	return e
}

func sessionQueue(name string) embedded.Entities {
	e := queues(name)
	e.Queues[0].Properties.RequiresSession = true
	return e
}

func sendBatch(b *testing.B, s *azservicebus.Sender, count int, of func(i int) *azservicebus.Message) {
	b.Helper()
	batch, err := s.NewMessageBatch(b.Context(), nil)
	require.NoError(b, err)
	for i := range count {
		require.NoError(b, batch.AddMessage(of(i), nil))
	}
	require.NoError(b, s.SendMessageBatch(b.Context(), batch, nil))
}

var body = make([]byte, 200)

func BenchmarkSendingInBatchesOf100(b *testing.B) {
	for _, senders := range []int{1, 4} {
		b.Run(fmt.Sprintf("senders=%d", senders), func(b *testing.B) {
			client := serveLoopback(b, queues("q"))()
			var left atomic.Int64
			var all sync.WaitGroup
			ready := make([]*azservicebus.Sender, senders)
			for i := range ready {
				s, err := client.NewSender("q", nil)
				require.NoError(b, err)
				sendBatch(b, s, 1, func(int) *azservicebus.Message { return &azservicebus.Message{Body: body} })
				ready[i] = s
			}
			left.Store(int64(b.N))
			b.ResetTimer()
			for _, s := range ready {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						sendBatch(b, s, 100, func(int) *azservicebus.Message { return &azservicebus.Message{Body: body} })
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N*100)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

func BenchmarkReceivingAndCompletingOver64Sessions(b *testing.B) {
	const sessions = 64
	connect := serveLoopback(b, sessionQueue("q"))
	client := connect()
	s, err := client.NewSender("q", nil)
	require.NoError(b, err)
	each := b.N/sessions + 1
	for id := range sessions {
		session := strconv.Itoa(id)
		for sent := 0; sent < each; sent += 100 {
			sendBatch(b, s, min(100, each-sent), func(int) *azservicebus.Message {
				return &azservicebus.Message{Body: body, SessionID: &session}
			})
		}
	}
	receivers := make([]*azservicebus.SessionReceiver, sessions)
	for id := range receivers {
		receivers[id], err = client.AcceptSessionForQueue(b.Context(), "q", strconv.Itoa(id), nil)
		require.NoError(b, err)
	}
	b.ResetTimer()
	var all sync.WaitGroup
	for _, r := range receivers {
		all.Go(func() {
			for range each {
				m, err := r.ReceiveMessages(b.Context(), 1, nil)
				require.NoError(b, err)
				require.NoError(b, r.CompleteMessage(b.Context(), m[0], nil))
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(each*sessions)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkSending1000ASecond sends 1,000 messages a second without waiting for confirmations, and reports the latency.
func BenchmarkSending1000ASecond(b *testing.B) {
	const senders = 8
	client := serveLoopback(b, queues("q"))()
	var all sync.WaitGroup
	due := make(chan time.Time, b.N)
	took := make([][]time.Duration, senders)
	for i := range senders {
		s, err := client.NewSender("q", nil)
		require.NoError(b, err)
		require.NoError(b, s.SendMessage(b.Context(), &azservicebus.Message{Body: body}, nil))
		all.Go(func() {
			for at := range due {
				require.NoError(b, s.SendMessage(b.Context(), &azservicebus.Message{Body: body}, nil))
				took[i] = append(took[i], time.Since(at))
			}
		})
	}
	b.ResetTimer()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range b.N {
		due <- <-tick.C
	}
	close(due)
	all.Wait()
	latencies := slices.Sorted(func(yield func(time.Duration) bool) {
		for _, part := range took {
			for _, d := range part {
				if !yield(d) {
					return
				}
			}
		}
	})
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(latencies[len(latencies)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// BenchmarkAMillionWaitingMessages measures heap and speed while many messages wait in the queue. MESSAGEHUB_WAITING
// sets the number of messages.
func BenchmarkAMillionWaitingMessages(b *testing.B) {
	waiting, err := strconv.Atoi(os.Getenv("MESSAGEHUB_WAITING"))
	if err != nil {
		waiting = 100_000
	}
	client := serveLoopback(b, queues("q"))()
	var left atomic.Int64
	left.Store(int64(waiting / 100))
	before := heapAlloc()
	var all sync.WaitGroup
	for range 4 {
		s, err := client.NewSender("q", nil)
		require.NoError(b, err)
		all.Go(func() {
			for left.Add(-1) >= 0 {
				sendBatch(b, s, 100, func(int) *azservicebus.Message { return &azservicebus.Message{Body: body} })
			}
		})
	}
	all.Wait()
	grown := float64(heapAlloc()-before) / (1 << 20)
	r, err := client.NewReceiverForQueue("q", nil)
	require.NoError(b, err)
	for b.Loop() {
		m, err := r.ReceiveMessages(b.Context(), 1, nil)
		require.NoError(b, err)
		require.NoError(b, r.CompleteMessage(b.Context(), m[0], nil))
	}
	b.ReportMetric(grown, "heap-MB")
	b.ReportMetric(float64(waiting), "waiting")
}

func heapAlloc() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

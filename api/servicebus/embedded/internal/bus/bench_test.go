package bus

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

func onDisk(b *testing.B) *Bus { return openDisk(b, b.TempDir()) }

func openDisk(b *testing.B, dir string) *Bus {
	b.Helper()
	store, err := disk.Open(dir)
	require.NoError(b, err)
	bus, err := Open(store, Options{Codec: jsonCodec{}})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, bus.Close())
		require.NoError(b, store.Close())
	})
	return bus
}

// kilobyteMessage returns a message of about 1 KB.
func kilobyteMessage(session int) Message {
	m := Message{Sections: make([]byte, 1000)}
	if session >= 0 {
		id := strconv.Itoa(session)
		m.SessionID = &id
	}
	return m
}

func batchOf(n, sessions int) []Message {
	batch := make([]Message, n)
	for i := range batch {
		batch[i] = kilobyteMessage(i % sessions)
	}
	return batch
}

// fillQueue sends n messages in batches of 100. Four batches are sent concurrently.
func fillQueue(b *testing.B, bus *Bus, n, sessions int) {
	var senders sync.WaitGroup
	var mu sync.Mutex
	left := n / 100
	for range 4 {
		senders.Go(func() {
			for {
				mu.Lock()
				left--
				more := left >= 0
				mu.Unlock()
				if !more {
					return
				}
				if err := awaitDone(func(done func(error)) { bus.Send("q", batchOf(100, sessions), done) }); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
}

func BenchmarkSendInBatchesOf100(b *testing.B) {
	bus := onDisk(b)
	require.NoError(b, awaitDone(func(done func(error)) {
		bus.Create(Entity{Path: "q", Kind: Queue, RequiresSession: true, MaxBytes: 1 << 40}, done)
	}))
	b.ResetTimer()
	began := time.Now()
	fillQueue(b, bus, b.N*100, 64)
	b.ReportMetric(float64(b.N*100)/time.Since(began).Seconds(), "msg/s")
}

func BenchmarkReceiveAndCompleteOver64Sessions(b *testing.B) {
	bus := onDisk(b)
	require.NoError(b, awaitDone(func(done func(error)) {
		bus.Create(Entity{Path: "q", Kind: Queue, RequiresSession: true, MaxBytes: 1 << 40}, done)
	}))
	const sessions = 64
	rounds := (b.N*sessions + 99) / 100 * 100
	fillQueue(b, bus, rounds, sessions)
	b.ResetTimer()
	began := time.Now()
	consumeAll(b, bus, sessions, rounds, 0)
	b.ReportMetric(float64(rounds)/time.Since(began).Seconds(), "msg/s")
}

// consumeAll completes all messages, one at a time in each session. Every worker accepts a new session after perSession
// messages.
func consumeAll(b *testing.B, bus *Bus, workers, total, perSession int) {
	c := &sessionDrainer{b: b, bus: bus, left: total, perSession: perSession, over: make(chan struct{})}
	for range workers {
		c.drainNext()
	}
	<-c.over
}

type sessionDrainer struct {
	b          *testing.B
	bus        *Bus
	perSession int
	over       chan struct{}

	mu   sync.Mutex
	left int
}

func (c *sessionDrainer) drainNext() {
	var r *Receiver
	took := 0
	options := ReceiverOptions{Deliver: func(d Delivery) {
		c.bus.Settle("q", []LockToken{d.Token}, Settlement{}, func(err error) {
			if err != nil && !errors.Is(err, ErrClosed) { // a few receives are still running when the bus is closed
				c.b.Error(err)
			}
			if took++; took == c.perSession {
				r.Close()
				c.drainNext()
			} else {
				r.AddCredit(1)
			}
			c.countCompleted()
		})
	}}
	c.bus.AcceptSession("q", SessionRequest{}, options, func(got *Receiver, err error) {
		if r = got; err == nil {
			r.AddCredit(1)
		}
	})
}

func (c *sessionDrainer) countCompleted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.over)
	}
}

// BenchmarkSingleSend reports the latency of single sends at 1,000/s.
func BenchmarkSingleSend(b *testing.B) {
	bus := onDisk(b)
	require.NoError(b, awaitDone(func(done func(error)) {
		bus.Create(Entity{Path: "q", Kind: Queue, MaxBytes: 1 << 40}, done)
	}))
	took := make([]time.Duration, b.N)
	var sends sync.WaitGroup
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	b.ResetTimer()
	for i := range b.N {
		<-tick.C
		sends.Add(1)
		began := time.Now()
		bus.Send("q", []Message{kilobyteMessage(-1)}, func(err error) {
			if took[i] = time.Since(began); err != nil {
				b.Error(err)
			}
			sends.Done()
		})
	}
	sends.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkMillionWaiting measures memory and the speed of sending and receiving while many messages wait. BUS_WAITING
// sets their number.
func BenchmarkMillionWaiting(b *testing.B) {
	waiting := 1_000_000
	if s := os.Getenv("BUS_WAITING"); s != "" {
		waiting, _ = strconv.Atoi(s)
	}
	for _, sessions := range []int{64, 100_000} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			dir := b.TempDir()
			bus := openDisk(b, dir)
			require.NoError(b, awaitDone(func(done func(error)) {
				bus.Create(Entity{Path: "q", Kind: Queue, RequiresSession: true, MaxBytes: 1 << 40}, done)
			}))
			before := heapBytes()
			began := time.Now()
			fillSpread(b, bus, waiting, sessions)
			sent := float64(waiting) / time.Since(began).Seconds()
			cost := heapBytes() - before
			const some = 20_000
			b.ResetTimer()
			began = time.Now()
			for range b.N {
				consumeAll(b, bus, 64, some, max(waiting/sessions/10, 1))
			}
			b.ReportMetric(some*float64(b.N)/time.Since(began).Seconds(), "completed/s")
			b.ReportMetric(sent, "sent/s")
			b.ReportMetric(cost/(1<<20), "MiB-heap")
			require.NoError(b, bus.Close())
			require.NoError(b, bus.journal.store.Close())
			began = time.Now()
			again := openDisk(b, dir)
			b.ReportMetric(time.Since(began).Seconds(), "s-to-open")
			counts, err := again.Counts("q")
			require.NoError(b, err)
			require.InDelta(b, waiting-some*b.N, counts.Active, 200)
		})
	}
}

func fillSpread(b *testing.B, bus *Bus, n, sessions int) {
	for i := 0; i < n; i += 1000 {
		batch := make([]Message, 1000)
		for k := range batch {
			batch[k] = kilobyteMessage((i + k) % sessions)
		}
		if err := awaitDone(func(done func(error)) { bus.Send("q", batch, done) }); err != nil {
			b.Fatal(err)
		}
	}
}

func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

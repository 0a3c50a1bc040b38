package delivery_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/delivery"
	"github.com/messagehub/messagehub/domain/delivery/deliverytest"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A longStream has n entries that are created when they are read.
type longStream struct {
	repository.Streams
	n int64
}

func (s longStream) Read(_ context.Context, _ domain.StreamName, from domain.Position, limit int) (repository.Entries, error) {
	found := repository.Entries{Start: from}
	for ; from.Number < s.n && len(found.Entries) < limit; from.Number++ {
		found.Entries = append(found.Entries, repository.Entry{
			Message: domain.Message{ContentType: "application/json", Payload: make([]byte, 256)}, Position: from, Published: time.Now(),
		})
	}
	return found, nil
}

func (s longStream) End(context.Context, domain.StreamName) (repository.StreamEnd, error) {
	return repository.StreamEnd{Positions: []domain.Position{{EntryID: domain.EntryID{Number: s.n}}}}, nil
}

// heap returns the bytes of the heap in use.
func heap() float64 {
	var m runtime.MemStats
	for range 3 { // for finalizers, and for the memory that they free
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// heapWith returns the heap size while receivers process a stream of n entries, after some
// thousand calls.
func heapWith(t *testing.T, n int64, receivers int) (used float64) {
	synctest.Test(t, func(t *testing.T) {
		w := deliverytest.NewWorld(t, func(clock *deliverytest.Clock) repositorytest.PushStores {
			s := openMemory(t, clock)
			s.Streams = longStream{s.Streams, n}
			return s
		})
		before := heap()
		for range receivers {
			w.Add(&deliverytest.Receiver{Policy: domain.DefaultPolicy(), Answer: deliverytest.After(10*time.Second, 200)})
		}
		node := w.Start(delivery.Options{Window: 1 << 20})
		<-time.After(5 * time.Minute)
		used = heap() - before
		node.Stop()
	})
	return used
}

// This is rule P16.
func TestHeap_DoesNotGrowWithWaitingMessages(t *testing.T) {
	base := heap()
	few, many := base+heapWith(t, 1000, 8), base+heapWith(t, 1_000_000, 8)
	t.Logf("%.0f bytes with a thousand, %.0f with a million", few, many)
	require.InEpsilon(t, few, many, 0.1)
}

// This is rule P16.
func TestHeap_OfTenThousandCursors(t *testing.T) {
	used := heapWith(t, 0, 10_000)
	t.Logf("%.0f bytes", used)
	require.Less(t, used, float64(64<<20))
}

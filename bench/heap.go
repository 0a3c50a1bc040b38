package bench

import (
	"context"
	"runtime/metrics"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/bench/load"
)

// A heapSize records the live heap of this process after its latest garbage
// collection, repeatedly. It does not force collections, because they would slow
// the measured code.
type heapSize struct {
	mu    sync.Mutex
	sizes []float64 // bytes
}

// addSample records the current size. It is a task of a load, but does not count as an operation.
func (h *heapSize) addSample(context.Context) load.Outcome {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sizes = append(h.sizes, float64(sample[0].Value.Uint64()))
	return load.Outcome{}
}

// endSize returns the size in the last tenth of the run.
func (h *heapSize) endSize() float64 { return h.median(0.9, 1) }

// growsFrom returns the growth of the heap, in per cent, from the tenth of the run that begins at
// part to the last tenth. It compares medians, because a collection may happen while a large
// response is in memory.
func (h *heapSize) growsFrom(part float64) float64 {
	return 100 * (h.endSize()/h.median(part, part+0.1) - 1)
}

func (h *heapSize) median(from, to float64) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := float64(len(h.sizes))
	part := slices.Sorted(slices.Values(h.sizes[int(from*n):int(to*n)]))
	if len(part) == 0 {
		return 0
	}
	return part[len(part)/2]
}

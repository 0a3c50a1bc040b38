package bench

import (
	"context"
	"runtime/metrics"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/bench/load"
)

// A heapSize is what was live on the heap of this process when the collector looked
// last, again and again. It forces no collection, for that would be felt by what is
// measured.
type heapSize struct {
	mu    sync.Mutex
	sizes []float64 // bytes
}

// addSample takes one more size. It is an operation of a load, and not counted.
func (h *heapSize) addSample(context.Context) load.Outcome {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sizes = append(h.sizes, float64(sample[0].Value.Uint64()))
	return load.Outcome{}
}

// endSize is the size in the last tenth of the time.
func (h *heapSize) endSize() float64 { return h.median(0.9, 1) }

// growsFrom is by how many per cent the size in the last tenth is above that in the
// tenth that begins at a part of the time. Both are medians: when the collector looks,
// this or that big answer may be under way.
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

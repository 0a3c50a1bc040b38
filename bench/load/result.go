package load

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result is the outcome of a load. It is complete when Run has returned.
type Result struct {
	// These show whether the generator kept to its plan.
	Workers  int           // the most operations that were under way at once
	Backlog  int           // the most that were due and not begun when another was due
	Lateness time.Duration // the longest that one was due and not begun

	mu       sync.Mutex
	kinds    map[string]*Latencies
	failures map[string]int
}

func newResult() *Result {
	return &Result{kinds: make(map[string]*Latencies), failures: make(map[string]int)}
}

// LatenciesOf returns the latencies of the operations of a kind; there may be none.
func (r *Result) LatenciesOf(kind string) *Latencies {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latenciesOf(kind)
}

func (r *Result) latenciesOf(kind string) *Latencies {
	l := r.kinds[kind]
	if l == nil {
		l = NewLatencies()
		r.kinds[kind] = l
	}
	return l
}

// Kinds returns the kinds of operations that were counted, in the order of the
// alphabet.
func (r *Result) Kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.kinds))
}

// Failures returns how many operations failed, by their kind and that of the failure,
// as "peek: 503".
func (r *Result) Failures() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.failures)
}

func (r *Result) addOutcome(o Outcome, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Failed != "" {
		r.failures[o.Kind+": "+o.Failed]++
	}
	if o.Kind != "" {
		r.latenciesOf(o.Kind).Record(took)
	}
}

func (r *Result) addStart(late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Lateness = max(r.Lateness, late)
}

// The range of a histogram, and its significant digits.
const (
	shortest = time.Microsecond
	longest  = 10 * time.Minute
	digits   = 3
)

// Latencies are how long operations took. They may be recorded by one goroutine at a
// time only.
type Latencies struct {
	histogram *hdrhistogram.Histogram // of µs
}

// NewLatencies returns Latencies of no operations.
func NewLatencies() *Latencies {
	return &Latencies{hdrhistogram.New(shortest.Microseconds(), longest.Microseconds(), digits)}
}

// Record adds one operation.
func (l *Latencies) Record(took time.Duration) {
	// It cannot fail within these bounds.
	_ = l.histogram.RecordValue(min(max(took, shortest), longest).Microseconds())
}

// Add adds the operations of another.
func (l *Latencies) Add(other *Latencies) { l.histogram.Merge(other.histogram) }

// Count is how many operations there were.
func (l *Latencies) Count() int64 { return l.histogram.TotalCount() }

// Percentile returns the time that percent of the operations did not exceed: 99.9 gives the time
// that one of a thousand exceeds. It is 0 if there were none.
func (l *Latencies) Percentile(percent float64) time.Duration {
	return time.Duration(l.histogram.ValueAtPercentile(percent)) * time.Microsecond
}

// Percentiles are those that are usually reported.
type Percentiles struct{ P50, P90, P99, P999, Max time.Duration }

// Percentiles returns those of l.
func (l *Latencies) Percentiles() Percentiles {
	return Percentiles{P50: l.Percentile(50), P90: l.Percentile(90), P99: l.Percentile(99), P999: l.Percentile(99.9), Max: l.Percentile(100)}
}

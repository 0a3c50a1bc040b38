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
	// Workers, Backlog and Lateness show whether the generator followed its plan.
	Workers  int           // maximum number of concurrent operations
	Backlog  int           // maximum number of operations that were due and had not started
	Lateness time.Duration // longest time from the due time of an operation to its start

	mu       sync.Mutex
	kinds    map[string]*Latencies
	failures map[string]int
}

func newResult() *Result {
	return &Result{kinds: make(map[string]*Latencies), failures: make(map[string]int)}
}

// LatenciesOf returns the latencies of the operations of a kind, which are empty if
// there were none.
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

// Kinds returns the kinds of the counted operations, in alphabetical order.
func (r *Result) Kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.kinds))
}

// Failures returns the numbers of failed operations by kind and failure, such as
// "peek: 503".
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

// Latencies are the durations of operations. They are not safe for concurrent use.
type Latencies struct {
	histogram *hdrhistogram.Histogram // in µs
}

// NewLatencies returns empty Latencies.
func NewLatencies() *Latencies {
	return &Latencies{hdrhistogram.New(shortest.Microseconds(), longest.Microseconds(), digits)}
}

// Record adds one operation.
func (l *Latencies) Record(took time.Duration) {
	// RecordValue cannot fail within these bounds.
	_ = l.histogram.RecordValue(min(max(took, shortest), longest).Microseconds())
}

// Add adds the operations of other.
func (l *Latencies) Add(other *Latencies) { l.histogram.Merge(other.histogram) }

// Count returns the number of operations.
func (l *Latencies) Count() int64 { return l.histogram.TotalCount() }

// Percentile returns the time that percent of the operations did not exceed: for 99.9, one
// operation of a thousand exceeds it. It is 0 if there were no operations.
func (l *Latencies) Percentile(percent float64) time.Duration {
	return time.Duration(l.histogram.ValueAtPercentile(percent)) * time.Microsecond
}

// Percentiles are the percentiles that reports contain.
type Percentiles struct{ P50, P90, P99, P999, Max time.Duration }

// Percentiles returns the percentiles of l that reports contain.
func (l *Latencies) Percentiles() Percentiles {
	return Percentiles{P50: l.Percentile(50), P90: l.Percentile(90), P99: l.Percentile(99), P999: l.Percentile(99.9), Max: l.Percentile(100)}
}

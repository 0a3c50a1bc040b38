package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/load"
)

// carryOut carries out a plan and tells how far it is. from and to are which part of
// the scenario it is.
func (r *run) carryOut(ctx context.Context, p load.Plan, step string, from, to float64) (*load.Result, error) {
	var watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() {
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			done := min(1, float64(time.Since(began))/float64(p.Lasts))
			r.progress(from+(to-from)*done, "%s", step)
			select {
			case <-tick.C:
			case <-over:
				return
			}
		}
	})
	result, err := load.Run(ctx, p)
	close(over)
	watching.Wait()
	return result, err
}

// latencies tells how long the operations of a kind took; p99 is the target, nil if
// there is none.
func (r *run) latencies(result *load.Result, kind string, p99 *figure.Target) {
	l := result.Of(kind)
	p := l.Percentiles()
	r.figure("hub", kind+" p50", inMS(p.P50), "ms", nil)
	r.figure("hub", kind+" p90", inMS(p.P90), "ms", nil)
	r.figure("hub", kind+" p99", inMS(p.P99), "ms", p99)
	r.figure("hub", kind+" p99.9", inMS(p.P999), "ms", nil)
	r.figure("hub", kind+" max", inMS(p.Max), "ms", nil)
	var points []figure.Point
	for _, percent := range []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99} {
		if float64(l.Count())*(1-percent/100) >= 1 { // one operation at least is beyond
			points = append(points, figure.Point{X: percent / 100, Y: inMS(l.At(percent))})
		}
	}
	r.curve(figure.Percentiles, "hub "+kind, "ms", points...)
}

// p99 is that of the operations of a kind, of which there must be some to compare.
func p99(d *day, kind string) (time.Duration, error) {
	l := d.result.Of(kind)
	if l.Count() == 0 {
		return 0, fmt.Errorf("there was no %s that could be measured", kind)
	}
	return l.At(99), nil
}

// generator tells whether the load came as it was planned, and what failed.
func (r *run) generator(result *load.Result) {
	r.figure("hub", "generator late by at most", inMS(result.Lateness), "ms", nil)
	r.figure("hub", "generator backlog at most", float64(result.Backlog), "operations", nil)
	failures := result.Failures()
	for _, kind := range slices.Sorted(maps.Keys(failures)) {
		r.figure("hub", "failed "+kind, float64(failures[kind]), "", nil)
	}
}

// accounted tells whether a group has got what it was sent, once.
func (r *run) accounted(kind string, s stock) {
	r.figure("hub", kind+"events lost", float64(s.lost()), "", figure.AtMost(0))
	r.figure("hub", kind+"events twice", float64(s.twice()), "", figure.AtMost(0))
}

// failed is how many operations failed in all.
func failed(result *load.Result) (n int) {
	for _, of := range result.Failures() {
		n += of
	}
	return n
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

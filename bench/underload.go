package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/market"
)

// hold lets a market go on, at a place of its own. from and to are which part of the
// scenario it is.
func (r *run) hold(ctx context.Context, m market.Market, step string, from, to float64) (d *market.Day, err error) {
	m.Seed = r.Seed
	m.Tell = func(done float64) { r.progress(from+(to-from)*done, "%s", step) }
	err = r.inNewPlace(ctx, func(p place) error {
		database := "messagehub-bench-" + r.scenario
		d, err = m.Hold(ctx, p.Account, database, filepath.Join(p.folder, "hub"))
		return errors.Join(err, p.Drop(context.WithoutCancel(ctx), database))
	})
	return d, err
}

// latencies tells how long the operations of a kind took; p99 is the target, nil if
// there is none.
func (r *run) latencies(d *market.Day, kind string, p99 *figure.Target) {
	l := d.LatenciesOf(kind)
	p := l.Percentiles()
	r.figure("hub", kind+" p50", inMS(p.P50), "ms", nil)
	r.figure("hub", kind+" p90", inMS(p.P90), "ms", nil)
	r.figure("hub", kind+" p99", inMS(p.P99), "ms", p99)
	r.figure("hub", kind+" p99.9", inMS(p.P999), "ms", nil)
	r.figure("hub", kind+" max", inMS(p.Max), "ms", nil)
	var points []figure.Point
	for _, percent := range []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99} {
		if float64(l.Count())*(1-percent/100) >= 1 { // one operation at least is beyond
			points = append(points, figure.Point{X: percent / 100, Y: inMS(l.Percentile(percent))})
		}
	}
	r.curve(figure.Percentiles, "hub "+kind, "ms", points...)
}

// p99 is that of the operations of a kind, of which there must be some to compare.
func p99(d *market.Day, kind string) (time.Duration, error) {
	l := d.LatenciesOf(kind)
	if l.Count() == 0 {
		return 0, fmt.Errorf("there was no %s that could be measured", kind)
	}
	return l.Percentile(99), nil
}

// generator tells whether the load came as it was planned, and what failed.
func (r *run) generator(d *market.Day) {
	r.figure("hub", "generator late by at most", inMS(d.Lateness), "ms", nil)
	r.figure("hub", "generator backlog at most", float64(d.Backlog), "operations", nil)
	failures := d.Failures()
	for _, kind := range slices.Sorted(maps.Keys(failures)) {
		r.figure("hub", "failed "+kind, float64(failures[kind]), "", nil)
	}
}

// accounted tells whether a group has got what it was sent, once.
func (r *run) accounted(kind string, s market.Stock) {
	r.figure("hub", kind+"events lost", float64(s.Lost()), "", figure.AtMost(0))
	r.figure("hub", kind+"events twice", float64(s.Twice()), "", figure.AtMost(0))
}

// failed is how many operations failed in all.
func failed(d *market.Day) (n int) {
	for _, of := range d.Failures() {
		n += of
	}
	return n
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// used tells what the account gave while there was load, in all and by container.
func (r *run) used(d *market.Day, t market.Throughput) {
	u, over := d.Used, d.Took.Seconds()
	r.figure("hub", "provisioned", float64(t.Total()), "RU/s", nil)
	r.figure("hub", "used", u.Units()/over, "RU/s", nil)
	r.figure("hub", "used of catalog", 100*u.Catalog.Units/over/float64(t.Catalog), "%", nil)
	r.figure("hub", "used of cabinet", 100*u.Cabinet.Units/over/float64(t.Cabinet), "%", nil)
	r.figure("hub", "used of bundles", 100*u.Bundles.Units/over/float64(t.Bundles), "%", nil)
	r.figure("hub", "requests to the account", float64(u.Requests())/over, "1/s", nil)
	r.figure("hub", "requests refused for throughput", float64(u.Refused()), "", nil)
}

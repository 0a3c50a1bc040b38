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

// runMarket runs a market on a new site. Meanwhile it reports progress between from and to, which
// are fractions of the scenario's duration.
func (r *scenarioRun) runMarket(ctx context.Context, m market.Market, step string, from, to float64) (d *market.Day, err error) {
	m.Seed = r.Seed
	m.ReportProgress = func(done float64) { r.reportProgress(from+(to-from)*done, "%s", step) }
	err = r.runInNewSite(ctx, func(p testSite) error {
		database := "messagehub-bench-" + r.scenario
		d, err = m.Hold(ctx, p.Account, database, filepath.Join(p.folder, "hub"))
		return errors.Join(err, p.Drop(context.WithoutCancel(ctx), database))
	})
	return d, err
}

// reportLatencies reports the latencies of the operations of a kind. p99 is the target of their
// 99th percentile; nil means no target.
func (r *scenarioRun) reportLatencies(d *market.Day, kind string, p99 *figure.Target) {
	l := d.LatenciesOf(kind)
	p := l.Percentiles()
	r.reportFigure("hub", kind+" p50", inMS(p.P50), "ms", nil)
	r.reportFigure("hub", kind+" p90", inMS(p.P90), "ms", nil)
	r.reportFigure("hub", kind+" p99", inMS(p.P99), "ms", p99)
	r.reportFigure("hub", kind+" p99.9", inMS(p.P999), "ms", nil)
	r.reportFigure("hub", kind+" max", inMS(p.Max), "ms", nil)
	var points []figure.Point
	for _, percent := range []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99} {
		if float64(l.Count())*(1-percent/100) >= 1 { // at least one operation is slower than this percentile
			points = append(points, figure.Point{X: percent / 100, Y: inMS(l.Percentile(percent))})
		}
	}
	r.reportCurve(figure.Percentiles, "hub "+kind, "ms", points...)
}

// latencyP99 returns the p99 of the operations of a kind, or an error if there were none.
func latencyP99(d *market.Day, kind string) (time.Duration, error) {
	l := d.LatenciesOf(kind)
	if l.Count() == 0 {
		return 0, fmt.Errorf("there was no %s that could be measured", kind)
	}
	return l.Percentile(99), nil
}

// reportGenerator reports whether the load followed its plan, and which operations failed.
func (r *scenarioRun) reportGenerator(d *market.Day) {
	r.reportFigure("hub", "maximum lateness of the generator", inMS(d.Lateness), "ms", nil)
	r.reportFigure("hub", "maximum backlog of the generator", float64(d.Backlog), "operations", nil)
	failures := d.Failures()
	for _, kind := range slices.Sorted(maps.Keys(failures)) {
		r.reportFigure("hub", "failed "+kind, float64(failures[kind]), "", nil)
	}
}

// reportDeliveries reports whether a group received each event exactly once.
func (r *scenarioRun) reportDeliveries(kind string, s market.Stock) {
	r.reportFigure("hub", kind+"events lost", float64(s.Lost()), "", figure.AtMost(0))
	r.reportFigure("hub", kind+"events received twice", float64(s.Duplicates()), "", figure.AtMost(0))
}

// failedOperations returns the number of failed operations of all kinds.
func failedOperations(d *market.Day) (n int) {
	for _, of := range d.Failures() {
		n += of
	}
	return n
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// reportUsage reports the request units that the account served under load, in
// total and by container.
func (r *scenarioRun) reportUsage(d *market.Day, t market.Throughput) {
	u, over := d.Used, d.Took.Seconds()
	r.reportFigure("hub", "provisioned", float64(t.Total()), "RU/s", nil)
	r.reportFigure("hub", "used", u.Units()/over, "RU/s", nil)
	r.reportFigure("hub", "used of catalog", 100*u.Catalog.Units/over/float64(t.Catalog), "%", nil)
	r.reportFigure("hub", "used of cabinet", 100*u.Cabinet.Units/over/float64(t.Cabinet), "%", nil)
	r.reportFigure("hub", "used of bundles", 100*u.Bundles.Units/over/float64(t.Bundles), "%", nil)
	r.reportFigure("hub", "requests to the account", float64(u.Requests())/over, "1/s", nil)
	r.reportFigure("hub", "throttled requests", float64(u.Refused()), "", nil)
}

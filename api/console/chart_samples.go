package console

import (
	"context"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	sampleEvery = 20 * time.Second
	maxSamples  = 180 // one hour
)

// A seriesKind describes one line of the charts.
type seriesKind struct {
	title  string
	metric string
	isRate bool // whether the metric is a counter, of which the chart shows the growth per second
	isMax  bool // whether the chart shows the maximum of the metric over all its labels; if false, the sum
}

// seriesKinds are the lines of the charts, and the columns of the table beside the charts.
var seriesKinds = []seriesKind{
	{title: "Accepted events a second", metric: "messagehub_events_accepted_total", isRate: true},
	{title: "Dequeued events a second", metric: "messagehub_events_dequeued_total", isRate: true},
	{title: "Waiting events of all mailboxes", metric: "messagehub_waiting_events"},
	{title: "Age of the oldest event in seconds", metric: "messagehub_oldest_event_age_seconds", isMax: true},
	{title: "Requests a second", metric: "messagehub_http_request_duration_seconds", isRate: true},
	{title: "Request units a second", metric: "messagehub_cosmos_request_units_total", isRate: true},
}

// A metricReading is the value of a metric. If the metric does not exist, there is no value.
type metricReading struct {
	value   float64
	isKnown bool
}

// A sample contains a value for each of seriesKinds, in the unit of the charts.
type sample struct {
	at     time.Time
	values []metricReading
}

// samples contains the samples of the last hour, in memory.
type samples struct {
	mu     sync.Mutex
	before []metricReading // metric readings from which the last sample was computed
	all    []sample
}

// allSamples returns the samples, the oldest first.
func (s *samples) allSamples() []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sample(nil), s.all...)
}

// add computes a sample from metrics that were read at the given time.
func (s *samples) add(at time.Time, gathered []metricReading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := sample{at: at, values: make([]metricReading, len(seriesKinds))}
	for i, kind := range seriesKinds {
		now := gathered[i]
		if !kind.isRate {
			next.values[i] = now
			continue
		}
		if len(s.all) == 0 || !now.isKnown {
			continue
		}
		elapsed, before := at.Sub(s.all[len(s.all)-1].at).Seconds(), s.before[i]
		if grown := now.value - before.value; elapsed > 0 && grown >= 0 { // a counter that did not exist at the previous reading began at 0
			next.values[i] = metricReading{grown / elapsed, true}
		}
	}
	s.before = gathered
	s.all = append(s.all, next)
	if len(s.all) > maxSamples {
		s.all = append(s.all[:0], s.all[len(s.all)-maxSamples:]...)
	}
}

// takeSample reads the metrics and adds a sample.
func (c *Console) takeSample() {
	families, err := c.opts.Gatherer.Gather()
	if err != nil && len(families) == 0 {
		return // the next attempt may succeed; /metrics reports the error
	}
	gathered := make([]metricReading, len(seriesKinds))
	for i, kind := range seriesKinds {
		for _, family := range families {
			if family.GetName() == kind.metric {
				gathered[i] = readFamily(family, kind.isMax)
			}
		}
	}
	c.samples.add(c.opts.Clock(), gathered)
}

func readFamily(family *dto.MetricFamily, isMax bool) (r metricReading) {
	for _, m := range family.GetMetric() {
		value := 0.0
		switch {
		case m.GetCounter() != nil:
			value = m.GetCounter().GetValue()
		case m.GetGauge() != nil:
			value = m.GetGauge().GetValue()
		case m.GetHistogram() != nil:
			value = float64(m.GetHistogram().GetSampleCount())
		}
		if isMax {
			r.value = max(r.value, value)
		} else {
			r.value += value
		}
		r.isKnown = true
	}
	return r
}

// Run adds samples to the charts until ctx ends. Before it returns, it cancels a running check and
// waits until the check has ended.
func (c *Console) Run(ctx context.Context) {
	defer c.work.Wait()
	defer c.endCheck()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	c.takeSample()
	for {
		select {
		case <-tick.C:
			c.takeSample()
		case <-ctx.Done():
			return
		}
	}
}

package bench

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// measureDequeue repeatedly confirms a bundle of 51,200 events and, alternating with it, a bundle
// of a single event. Between two Dequeues of a bundle, an operator's Replay reopens it through an
// unmetered line. Hints that are written after the response are counted, but not timed. The report
// contains the request units of the first Dequeue of a bundle, because later Dequeues find their
// hints already written.
func measureDequeue(ctx context.Context, r *scenarioRun) error {
	return r.runInNewSite(ctx, func(p testSite) error { return dequeueAt(ctx, r, p.Account) })
}

func dequeueAt(ctx context.Context, r *scenarioRun, a *account.Account) error {
	if err := hub.Provision(ctx, a, perContainer); err != nil {
		return err
	}
	line := a.Line()
	measured, stop, err := openHub(ctx, a, line, cosmos.Options{})
	if err != nil {
		return err
	}
	defer stop()
	operator, stopOperator, err := openHub(ctx, a, a.Unmetered(), cosmos.Options{})
	if err != nil {
		return err
	}
	defer stopOperator()

	src := eventSource{seed: r.Seed}
	sizes := []int{1, int(worstEvents)}
	queues := make([]*reopenedQueue, len(sizes))
	for i, n := range sizes {
		r.reportProgress(0, "fill and peek %d events", n)
		if queues[i], err = newReopenedQueue(ctx, a, &src, n); err != nil {
			return err
		}
	}
	times := pickSize(r, 500, 100)
	for i := range times {
		r.reportProgress(float64(i)/float64(times), "%d of %d", i, times)
		for _, q := range queues {
			if err := q.dequeueAgain(ctx, measured, line, operator); err != nil {
				return err
			}
		}
	}
	one, all := queues[0], queues[1]
	for i, q := range queues {
		what := []string{"1 event", "51,200 events"}[i]
		r.reportFigure("hub", what+", p50", quantile(q.costs, 0.50, milliseconds), "ms", nil)
		var target *figure.Target
		if q == all {
			target = figure.AtMost(100)
		}
		r.reportFigure("hub", what+", p99", quantile(q.costs, 0.99, milliseconds), "ms", target)
		r.reportFigure("hub", what+", request units, including hints", units(q.costs[0]), "RU", nil)
		r.reportFigure("hub", what+", requests, including hints", requests(q.costs[0]), "requests", nil)
		r.reportPercentiles("hub, "+what, q.costs)
	}
	r.reportFigure("hub", "p99 of 51,200 events, ratio to 1 event", quantile(all.costs, 0.99, milliseconds)/quantile(one.costs, 0.99, milliseconds), "times", figure.AtMost(1.2))
	r.reportFigure("hub", "p50 of 51,200 events, ratio to 1 event", quantile(all.costs, 0.50, milliseconds)/quantile(one.costs, 0.50, milliseconds), "times", figure.AtMost(1.2))
	return nil
}

// A reopenedQueue is a queue whose only bundle is dequeued and reopened repeatedly.
type reopenedQueue struct {
	actor domain.ActorID
	group domain.Group
	id    domain.BundleID
	costs []cost
}

func newReopenedQueue(ctx context.Context, a *account.Account, src *eventSource, n int) (*reopenedQueue, error) {
	q := &reopenedQueue{actor: src.newActor()}
	if err := fillStore(ctx, hub, a, q.actor, src.newEvents(n, q.actor, 1)); err != nil {
		return nil, err
	}
	s, err := hub.Open(ctx, a, a.Unmetered())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	bundle, err := openBundle(ctx, s, q.actor, src.newID())
	q.id, q.group = bundle.ID, bundle.Group
	return q, err
}

// dequeueAgain measures a Dequeue of the bundle, and then reopens the bundle.
func (q *reopenedQueue) dequeueAgain(ctx context.Context, measured *cosmos.Repository, l *account.Line, operator *cosmos.Repository) error {
	before := l.Count()
	took, err := measureCost(l, func() error {
		_, err := measured.Acknowledge(ctx, q.actor, q.id)
		return err
	})
	if err != nil {
		return err
	}
	measured.AwaitHints(ctx, q.actor)
	took.Count = l.Count().Since(before)
	q.costs = append(q.costs, took)
	_, err = operator.Replay(ctx, q.actor, q.group, repository.AdminAction{Who: "bench", Why: "to dequeue it again"})
	return err
}

// quantile returns the value that a share of the costs does not exceed.
func quantile(costs []cost, share float64, of func(cost) float64) float64 {
	found := make([]float64, len(costs))
	for i, c := range costs {
		found[i] = of(c)
	}
	slices.Sort(found)
	return found[min(int(share*float64(len(found))), len(found)-1)]
}

// reportPercentiles reports the times of costs as a curve.
func (r *scenarioRun) reportPercentiles(name string, costs []cost) {
	var points []figure.Point
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998} {
		points = append(points, figure.Point{X: share, Y: quantile(costs, share, milliseconds)})
	}
	r.reportCurve(figure.Percentiles, name, "ms", points...)
}

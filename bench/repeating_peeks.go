package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
)

// measureRepeatingPeeks measures a Dequeue while clients of the same actor repeat their Peeks,
// on a Strong and on a Session account.
func measureRepeatingPeeks(ctx context.Context, r *scenarioRun) error {
	levels := []string{"Strong", "Session"}
	if r.Endpoint != "" {
		levels = []string{""} // the consistency level of a real account cannot be chosen
	}
	for i, level := range levels {
		err := r.runInNewSiteWith(ctx, level, func(p testSite) error {
			if err := r.provisionAll(ctx, p.Account); err != nil {
				return err
			}
			part := 1 / float64(len(levels))
			return r.eachLayoutWithin(float64(i)*part, part, func(l layout.Layout, progress progressFunc) error {
				progress(0, "%s %s", l.Name, level)
				return repeatingPeeksOf(ctx, r, p.Account, l, level)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// repeatPause is the time that a client waits between the reply to a Peek and the next Peek.
const repeatPause = 50 * time.Millisecond

func repeatingPeeksOf(ctx context.Context, r *scenarioRun, a *account.Account, l layout.Layout, level string) error {
	s, err := l.Open(ctx, a, a.Line())
	if err != nil {
		return err
	}
	defer s.Close()
	src := eventSource{seed: r.Seed}
	for _, clients := range pickSize(r, []int{0, 1, 8, 32}, []int{0, 4}) {
		costs, err := dequeueDuringPeeks(ctx, s, &src, clients, pickSize(r, 200, 8))
		if err != nil {
			return fmt.Errorf("beside %d clients: %w", clients, err)
		}
		what := fmt.Sprintf("dequeue beside %d repeating clients", clients)
		if level != "" {
			what += ", " + level
		}
		var target *figure.Target
		if l.Name == hub.Name {
			target = figure.AtMost(100)
		}
		r.reportFigure(l.Name, what+", p50", quantile(costs, 0.5, milliseconds), "ms", nil)
		r.reportFigure(l.Name, what+", p99", quantile(costs, 0.99, milliseconds), "ms", target)
		r.reportFigure(l.Name, what+", max", quantile(costs, 1, milliseconds), "ms", nil)
	}
	return nil
}

// dequeueDuringPeeks dequeues bundles of one event each while clients repeat their Peeks.
func dequeueDuringPeeks(ctx context.Context, s *layout.Store, src *eventSource, clients, times int) (costs []cost, err error) {
	actor := src.newActor()
	if err := saveAll(ctx, s, actor, src.newEvents(times, actor, domain.MaxBundleWeight)); err != nil {
		return nil, err
	}
	s.Settle(ctx, actor)
	repeating, stop := context.WithCancel(ctx)
	failures := make([]error, clients)
	var running sync.WaitGroup
	for i := range failures {
		running.Go(func() { failures[i] = repeatPeeks(repeating, s, actor) })
	}
	for range times {
		took, failure := dequeueOnce(ctx, s, actor, src.newID())
		if failure != nil {
			err = failure
			break
		}
		costs = append(costs, took)
	}
	stop()
	running.Wait()
	s.Settle(ctx, actor)
	return costs, errors.Join(append(failures, err)...)
}

// dequeueOnce opens a bundle, waits for repeatPause, so that the clients peek the bundle, and
// dequeues it.
func dequeueOnce(ctx context.Context, s *layout.Store, actor domain.ActorID, id domain.BundleID) (cost, error) {
	bundle, err := openBundle(ctx, s, actor, id)
	if err == nil {
		err = waitFor(ctx, repeatPause)
	}
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	_, err = s.Acknowledge(ctx, actor, bundle.ID)
	return cost{took: time.Since(began)}, err
}

// repeatPeeks peeks the open bundle repeatedly until ctx ends.
func repeatPeeks(ctx context.Context, s *layout.Store, actor domain.ActorID) error {
	for ctx.Err() == nil {
		if _, err := s.NextUnacknowledged(ctx, actor, allGroups); err != nil && !errors.Is(err, domain.ErrNoData) && ctx.Err() == nil {
			return fmt.Errorf("a repeated peek: %w", err)
		}
		_ = waitFor(ctx, repeatPause) // waitFor fails only if ctx has ended
	}
	return nil
}

// waitFor waits for d or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

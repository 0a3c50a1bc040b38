package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/layout"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A cost is the time, requests and request units of an operation.
type cost struct {
	account.Count
	took time.Duration
}

// measureCost calls do, and returns the cost of the requests that do sends over l. It first
// collects the garbage of earlier work.
func measureCost(l *account.Line, do func() error) (cost, error) {
	runtime.GC()
	before, began := l.Count(), time.Now()
	err := do()
	return cost{l.Count().Since(before), time.Since(began)}, err
}

// maxSaveEvents is the maximum number of events in one call of Save.
const maxSaveEvents = 10_000

// saveAll saves events with one or more calls of Save, each with at most maxSaveEvents events.
func saveAll(ctx context.Context, s *layout.Store, to domain.ActorID, events []domain.Event) error {
	for some := range slices.Chunk(events, maxSaveEvents) {
		saved, err := s.Save(ctx, to, some)
		if err == nil && saved.Accepted != len(some) {
			err = fmt.Errorf("%d of %d events were accepted", saved.Accepted, len(some))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fillStore saves events without the modelled latency and charges, through a separate store.
// It returns when the background work of that store is complete.
func fillStore(ctx context.Context, l layout.Layout, a *account.Account, to domain.ActorID, events []domain.Event) error {
	s, err := l.Open(ctx, a, a.Unmetered())
	if err != nil {
		return err
	}
	defer s.Close()
	if err := saveAll(ctx, s, to, events); err != nil {
		return fmt.Errorf("fill %s: %w", l.Name, err)
	}
	s.Settle(ctx, to)
	return nil
}

// openBundle opens the next bundle of an actor, or returns its open bundle.
func openBundle(ctx context.Context, s *layout.Store, actor domain.ActorID, id domain.BundleID) (domain.Bundle, error) {
	next, err := s.NextUnacknowledged(ctx, actor, allGroups)
	if err != nil {
		return domain.Bundle{}, err
	}
	if next.Open != nil {
		return *next.Open, nil
	}
	bundle, err := composeBundle(ctx, id, next.Run)
	if err != nil {
		return domain.Bundle{}, err
	}
	return s.Add(ctx, bundle, next.Run)
}

// composeBundle returns a bundle with the events that run yields.
func composeBundle(ctx context.Context, id domain.BundleID, run repository.Run) (domain.Bundle, error) {
	bundle := domain.Bundle{
		ID: id, Group: run.Group(), Cabinet: run.Cabinet(), Content: domain.Manifest, Format: domain.JSON, Version: "1.0",
	}
	var filler domain.Filler
	for event, err := range run.Events(ctx) {
		if err != nil {
			return domain.Bundle{}, err
		}
		if !filler.Take(&event.Event, event.Sequence) || filler.Full() {
			break
		}
	}
	filler.Fill(&bundle)
	return bundle, nil
}

// median returns the median of of(v) for all values v.
func median[T any](values []T, of func(T) float64) float64 {
	found := make([]float64, len(values))
	for i, v := range values {
		found[i] = of(v)
	}
	slices.Sort(found)
	return found[len(found)/2]
}

// mean returns the mean of of(v) for all values v.
func mean[T any](values []T, of func(T) float64) float64 {
	var sum float64
	for _, v := range values {
		sum += of(v)
	}
	return sum / float64(len(values))
}

func milliseconds(c cost) float64 { return float64(c.took.Microseconds()) / 1000 }
func seconds(c cost) float64      { return c.took.Seconds() }
func units(c cost) float64        { return c.Units }
func requests(c cost) float64     { return float64(c.Requests) }

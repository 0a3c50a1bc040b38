package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/messagehub/messagehub/domain"
)

// Benchmark measures the operations that cost time and money: a Save of 1, 125 and 10,000 events of one
// cabinet, a Peek that finds no event, and a Peek with its Dequeue of 1, 2,000 and 51,200 events.
// It does not report what requests cost: a store that knows this can report it in a wrapper of open.
func Benchmark(b *testing.B, open func(b *testing.B, o Options) Stores) {
	for _, n := range []int{1, 125, 10_000} {
		b.Run(fmt.Sprintf("Save/%d", n), func(b *testing.B) {
			s, actor := open(b, Options{}), NewActor()
			b.ReportAllocs()
			for b.Loop() {
				events := Events(n, actor)
				if _, err := s.Events.Save(b.Context(), actor, events); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, n)
		})
	}
	b.Run("PeekEmpty", func(b *testing.B) {
		s, actor := open(b, Options{}), NewActor()
		saveInBatches(b, s, actor, 1)
		if _, err := Drain(b.Context(), s, actor, AllGroups); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Events.NextUnacknowledged(b.Context(), actor, AllGroups); !errors.Is(err, domain.ErrNoData) {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 2_000, 51_200} {
		b.Run(fmt.Sprintf("PeekDequeue/%d", n), func(b *testing.B) {
			s := open(b, Options{})
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				actor := NewActor() // a new actor's first bundle begins at the start of a drawer, so six drawers have room for it
				saveInBatches(b, s, actor, n, WithWeight(domain.MaxBundleWeight/domain.Weight(n)))
				b.StartTimer()
				if err := peekAndDequeue(b.Context(), s, actor, n); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b, n)
		})
	}
}

// saveInBatches saves n events in batches, as a domain does.
func saveInBatches(b *testing.B, s Stores, actor domain.ActorID, n int, changes ...Change) {
	for ; n > 0; n -= 10_000 {
		if _, err := s.Events.Save(b.Context(), actor, Events(min(n, 10_000), actor, changes...)); err != nil {
			b.Fatal(err)
		}
	}
}

func peekAndDequeue(ctx context.Context, s Stores, actor domain.ActorID, want int) error {
	peeked, err := Peek(ctx, s, actor, AllGroups, domain.BundleID{})
	if err != nil {
		return err
	}
	if peeked.Count != want || len(peeked.Events) != want {
		return fmt.Errorf("peeked %d events, want %d", peeked.Count, want)
	}
	_, err = s.Bundles.Acknowledge(ctx, actor, peeked.ID)
	return err
}

func perSecond(b *testing.B, n int) {
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

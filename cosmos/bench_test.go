package cosmos

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The benchmarks run on the durable engine and report the cost of each operation: time, request units
// (pessimistic profile), requests and allocations.

// A meter adds up the charges of the store while it runs.
type meter struct {
	*testing.B
	*rig
	units    float64
	requests int64
	ops      int
}

func newMeter(b *testing.B, hints bool) (*meter, *Repository) {
	r := newRig(b, embedded.Options{Dir: b.TempDir(), Pessimistic: true})
	b.ReportAllocs()
	return &meter{B: b, rig: r}, r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, hints)
}

// measure runs one operation. The timer of the benchmark runs only during the operation.
func (m *meter) measure(operation func()) {
	units, requests := m.engine.RequestUnits(), m.engine.Requests()
	m.StartTimer()
	operation()
	m.StopTimer()
	m.units += m.engine.RequestUnits() - units
	m.requests += m.engine.Requests() - requests
	m.ops++
}

// addCost runs work that follows the reply to an operation, and adds its cost to the operation measured
// last.
func (m *meter) addCost(work func()) {
	units, requests := m.engine.RequestUnits(), m.engine.Requests()
	work()
	m.units += m.engine.RequestUnits() - units
	m.requests += m.engine.Requests() - requests
}

// reportCost reports the cost of an operation on a number of events.
func (m *meter) reportCost(events int) {
	m.ReportMetric(m.units/float64(m.ops), "RU/op")
	m.ReportMetric(float64(m.requests)/float64(m.ops), "requests/op")
	if events > 1 {
		m.ReportMetric(m.units/float64(m.ops*events), "RU/event")
	}
	m.ReportMetric(float64(m.ops*events)/m.Elapsed().Seconds(), "events/s")
}

func BenchmarkSave(b *testing.B) {
	for _, n := range []int{1, 125, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, node := newMeter(b, true)
			actor := repositorytest.NewActor()
			ctx := context.Background()
			b.StopTimer()
			for range b.N {
				events := repositorytest.Events(n, actor)
				m.measure(func() {
					_, err := node.Save(ctx, actor, events)
					require.NoError(b, err)
				})
				node.hints.awaitHints(ctx, actor)
			}
			m.reportCost(n)
		})
	}
}

func BenchmarkPeekOfNothing(b *testing.B) {
	m, node := newMeter(b, true)
	ctx, actor := context.Background(), repositorytest.NewActor()
	_, err := node.Save(ctx, actor, repositorytest.Events(1, actor))
	require.NoError(b, err)
	_, err = repositorytest.Drain(ctx, m.stores(node), actor, allGroups)
	require.NoError(b, err)
	node.hints.awaitHints(ctx, actor)
	b.StopTimer()
	for range b.N {
		m.measure(func() {
			_, err := node.NextUnacknowledged(ctx, actor, allGroups)
			require.True(b, errors.Is(err, domain.ErrNoData))
		})
	}
	m.reportCost(1)
}

// fillMailbox saves n events as a domain does, a thousand at a time.
func fillMailbox(b testing.TB, node *Repository, actor domain.ActorID, n int, weight domain.Weight) {
	for ; n > 0; n -= 1000 {
		_, err := node.Save(context.Background(), actor, repositorytest.Events(min(n, 1000), actor, repositorytest.WithWeight(weight)))
		require.NoError(b, err)
	}
}

func BenchmarkPeekAndDequeue(b *testing.B) {
	for _, n := range []int{1, 2000, 51_200} {
		for _, what := range []string{"Peek", "Repeat", "Dequeue"} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				m, node := newMeter(b, true)
				ctx := context.Background()
				b.StopTimer()
				for range b.N {
					actor := repositorytest.NewActor()
					fillMailbox(b, node, actor, n, max(1, domain.MaxBundleWeight/domain.Weight(n)))
					node.hints.awaitHints(ctx, actor)
					var peeked repositorytest.PeekedBundle
					peek := func() {
						var err error
						peeked, err = repositorytest.Peek(ctx, m.stores(node), actor, allGroups, domain.BundleID{})
						require.NoError(b, err)
						require.Equal(b, n, len(peeked.Events))
					}
					dequeue := func() {
						_, err := node.Acknowledge(ctx, actor, peeked.ID)
						require.NoError(b, err)
					}
					switch what {
					case "Peek":
						m.measure(peek)
					case "Repeat":
						peek()
						m.measure(peek)
					case "Dequeue":
						peek()
						m.measure(dequeue)
						m.addCost(func() { node.hints.awaitHints(ctx, actor) }) // hints are written after the reply, but are part of the cost
					}
					if what != "Dequeue" {
						dequeue()
					}
					node.hints.awaitHints(ctx, actor)
				}
				m.reportCost(n)
			})
		}
	}
}

// BenchmarkBehind measures the time to compute the backlog. The computation needs no request; the bytes
// that the backlog adds to the head are not measured here.
func BenchmarkBehind(b *testing.B) {
	for _, cabinets := range []int{1, 10, maxCabinets} {
		b.Run(fmt.Sprint(cabinets), func(b *testing.B) {
			m, node := newMeter(b, false)
			actor := repositorytest.NewActor()
			var events []domain.Event
			for i := range cabinets {
				events = append(events, repositorytest.Event(actor, repositorytest.WithContentType(fmt.Sprint(i))))
			}
			_, err := node.Save(context.Background(), actor, events)
			require.NoError(b, err)
			next, err := node.NextUnacknowledged(context.Background(), actor, allGroups)
			require.NoError(b, err)
			before := m.engine.Requests()
			for b.Loop() {
				require.Equal(b, int64(cabinets-1), next.Run.BacklogAfter(1).Events)
			}
			require.Equal(b, before, m.engine.Requests())
		})
	}
}

// BenchmarkDrain peeks and dequeues 100,000 events in bundles of about 2,000. The cost of the hints is
// included.
func BenchmarkDrain(b *testing.B) {
	const events, weight, bundles = 100_000, 25, 49
	m, node := newMeter(b, true)
	ctx := context.Background()
	b.StopTimer()
	for range b.N {
		actor := repositorytest.NewActor()
		fillMailbox(b, node, actor, events, weight)
		node.hints.awaitHints(ctx, actor)
		m.measure(func() {
			drained, err := repositorytest.Drain(ctx, m.stores(node), actor, allGroups)
			require.NoError(b, err)
			require.Equal(b, bundles, len(drained))
		})
	}
	m.reportCost(events)
	b.ReportMetric(float64(m.requests)/float64(m.ops*bundles), "requests/bundle")
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{125, 1000} {
		b.Run(fmt.Sprintf("of batches of %d", size), func(b *testing.B) {
			const events = 200_000
			m, node := newMeter(b, true)
			ctx := context.Background()
			for range 4 {
				actor := repositorytest.NewActor()
				for n := 0; n < events/4; n += size {
					_, err := node.Save(ctx, actor, repositorytest.Events(size, actor))
					require.NoError(b, err)
				}
				node.hints.awaitHints(ctx, actor)
			}
			b.ResetTimer()
			b.StopTimer()
			for range b.N {
				m.measure(func() {
					report, err := node.Check(ctx, CheckOptions{})
					require.NoError(b, err)
					require.Zero(b, report.Found, "%v", report.Findings)
					require.EqualValues(b, events, report.Events)
				})
			}
			m.reportCost(events)
		})
	}
}

func BenchmarkSweep(b *testing.B) {
	for _, size := range []int{1, 125, 1000} {
		b.Run(fmt.Sprintf("of batches of %d", size), func(b *testing.B) {
			events, capacity := 20_000, 10_000
			if size == 1 {
				events, capacity = 2000, 1000
			}
			r := newRig(b, embedded.Options{Dir: b.TempDir(), Pessimistic: true})
			m := &meter{B: b, rig: r}
			b.ReportAllocs()
			ctx := context.Background()
			b.StopTimer()
			for range b.N {
				node := r.node(Options{Exclusive: true, SweepEvery: -1, DrawerCapacity: capacity}, true)
				actor := repositorytest.NewActor()
				for n := 0; n < events; n += size {
					_, err := node.Save(ctx, actor, repositorytest.Events(size, actor))
					require.NoError(b, err)
				}
				_, err := repositorytest.Drain(ctx, m.stores(node), actor, allGroups)
				require.NoError(b, err)
				node.hints.awaitHints(ctx, actor)
				sweeper := r.node(Options{Exclusive: true, Retention: 1}, false)
				m.measure(func() {
					swept, err := sweeper.beginCall("sweep").sweepRecipient(ctx, actor)
					require.NoError(b, err)
					require.Equal(b, 2, swept.Drawers)
				})
			}
			m.reportCost(events)
		})
	}
}

package cosmos

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// traceCost returns the request units per event from its Save to its Dequeue. Each Save has n events and
// a separate trace. Whenever the given number of events is waiting, they are peeked and dequeued.
func traceCost(t *testing.T, storeTraces bool, n, events, waiting int) float64 {
	t.Helper()
	r := newRig(t, embedded.Options{})
	node := r.node(Options{TailEvents: DefaultTailEvents, StoreTraces: storeTraces}, false)
	actor := repositorytest.NewActor()
	ctx, span := t.Context(), domain.TraceContext{Sampled: true}
	traced := func() context.Context {
		binary.BigEndian.PutUint64(span.TraceID[:], binary.BigEndian.Uint64(span.TraceID[:])+1)
		span.SpanID[0] = 1
		return domain.WithTraceContext(ctx, span)
	}
	save := func(count int) {
		for i := 0; i < count; i += n {
			_, err := node.Save(traced(), actor, repositorytest.Events(n, actor))
			require.NoError(t, err)
		}
	}
	save(max(n, 30)) // this Save creates the mailbox before the measurement begins
	begin := r.engine.RequestUnits()
	for saved := 0; saved < events; saved += waiting {
		save(waiting)
		next, err := node.NextUnacknowledged(ctx, actor, allGroups)
		require.NoError(t, err)
		bundle, _, err := repositorytest.MakeBundle(ctx, next.Run)
		require.NoError(t, err)
		bundle.Peeked = domain.TraceContextOf(traced())
		_, err = node.Add(ctx, bundle, next.Run)
		require.NoError(t, err)
		_ = next.Run.Saves(bundle.Count, 64)
		_, err = node.Acknowledge(ctx, actor, bundle.ID)
		require.NoError(t, err)
	}
	return (r.engine.RequestUnits() - begin) / float64(events)
}

// With traces, Saves of many events cost the same as without. A Save of one event costs at most 0.8 RU of
// 12 more, if every trace is sampled, because the head is larger.
func TestTraces_CostPerEvent(t *testing.T) {
	for _, c := range []struct {
		n, events, waiting int
		limit              float64
	}{{1, 60, 1, 1}, {1, 120, 10, 1}, {1, 240, 120, 1}, {10, 1200, 600, 0.03}, {100, 2000, 1000, 0.001}, {1000, 4000, 2000, 0.001}} {
		synctest.Test(t, func(t *testing.T) { // in a synctest bubble, waits take no real time
			off, on := traceCost(t, false, c.n, c.events, c.waiting), traceCost(t, true, c.n, c.events, c.waiting)
			t.Logf("%4d events a Save, %5d a bundle: %.3f RU an event, with traces %.4f more (%.1f %%)", c.n, c.waiting, off, on-off, (on-off)/off*100)
			assert.LessOrEqual(t, on-off, c.limit)
		})
	}
}

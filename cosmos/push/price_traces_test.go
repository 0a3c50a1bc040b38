package push

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// appendPrice returns the request units per message of an append of n messages with one span.
func appendPrice(t *testing.T, storeTraces bool, n int) float64 {
	t.Helper()
	r := newRig(t, embedded.Options{})
	node, stream := r.node(Options{StoreTraces: storeTraces}), repositorytest.NewStream()
	ctx := domain.WithTraceContext(t.Context(), domain.TraceContext{TraceID: domain.TraceID{1}, SpanID: domain.SpanID{1}, Sampled: true})
	const rounds = 100
	before := 0.0
	for i := range rounds + 1 {
		_, err := node.Append(ctx, stream, repositorytest.Messages(n))
		require.NoError(t, err)
		if i == 0 {
			before = r.engine.RequestUnits()
		}
	}
	return (r.engine.RequestUnits() - before) / float64(rounds*n)
}

// Storing a span with each append adds at most limit request units to the cost of each message.
func TestTraces_CostPerMessage(t *testing.T) {
	for _, c := range []struct {
		n     int
		limit float64
	}{{1, 1}, {10, 0.02}, {60, 0.02}} {
		off, on := appendPrice(t, false, c.n), appendPrice(t, true, c.n)
		t.Logf("%2d messages an append: %.3f RU a message, with traces %.4f more (%.1f %%)", c.n, off, on-off, (on-off)/off*100)
		require.LessOrEqual(t, on-off, c.limit)
	}
}

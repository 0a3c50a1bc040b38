package push

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// The cost of reading a page of retries depends on the size of the page, not on the total number of
// retries.
func TestReadingRetries_CostsUpToItsLimit(t *testing.T) {
	b := newBill(t)
	b.owner.Policy.Attempts = 12
	for range 8 {
		b.appendMessages(50, "")
		b.takeEntries()
		b.settleCalls(500)
	}
	price := func(step string, read func() (int, error), want int) float64 {
		b.steps = make(map[string]float64)
		b.payFor(step, func() {
			n, err := read()
			require.NoError(t, err)
			require.Equal(t, want, n)
		})
		return b.totalUnits(1)
	}
	list := func(limit int) func() (int, error) {
		return func() (int, error) {
			found, err := b.node.Retries(t.Context(), b.id, domain.EntryID{Number: -1}, limit)
			return len(found), err
		}
	}
	require.LessOrEqual(t, price("standing", func() (int, error) { _, err := b.node.Standing(t.Context(), b.id); return 1, err }, 1), 2.1)
	require.LessOrEqual(t, price("one", func() (int, error) {
		_, err := b.node.Retry(t.Context(), b.id, domain.EntryID{Number: 1})
		return 1, err
	}, 1), 2.1)
	require.LessOrEqual(t, price("a page of 25", list(25), 25), 32.0)
	require.LessOrEqual(t, price("a page of 100", list(100), 100), 120.0)
}

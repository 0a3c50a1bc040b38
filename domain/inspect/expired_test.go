package inspect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
)

// skipExpired moves the cursor past the entries of priority 0 whose numbers are less than to. These entries have
// expired.
func (w *world) skipExpired(to int64) {
	w.Helper()
	cursor, version, err := w.cursors.Load(w.Context(), w.id.Cursor(), domain.Owner{Incarnation: w.node, Limit: 16, Policy: w.policy}, func() time.Time { return w.now })
	require.NoError(w, err)
	cursor.Skip(domain.Position{EntryID: domain.EntryID{Number: to}}, w.now)
	_, err = w.cursors.Settle(w.Context(), w.id.Cursor(), version, cursor.Settlement())
	require.NoError(w, err)
}

func TestExpiredMessages_AreShownAsOneRange(t *testing.T) {
	w := newWorld(t, "")
	w.publishTypes(0, "a", "b", "c")
	w.now = w.now.Add(72 * time.Hour)
	w.publishTypes(0, "d")
	w.skipExpired(3)
	want := []domain.Expiry{{From: domain.EntryID{}, To: 3, At: w.now}}
	for state, isShown := range map[inspect.State]bool{"": true, inspect.Dead: true, inspect.Waiting: false} {
		page, err := w.List(t.Context(), w.reader, inspect.Query{Subscription: w.id, State: state})
		require.NoError(t, err)
		if isShown {
			require.Equal(t, want, page.Expired)
		} else {
			require.Empty(t, page.Expired)
		}
	}
	w.now = w.now.Add(time.Hour)
	d := w.get(2)
	require.Equal(t, inspect.Expired, d.State)
	require.False(t, d.Inferred)
	require.NotEmpty(t, d.Reason)
	x := w.explain(0, 2)
	require.Equal(t, inspect.CauseExpired, x.Cause)
	require.Contains(t, x.Sentences, "The subscription passed it at 2030-01-04T12:00:00Z: 3 messages of its priority, from number 0 on, had expired.")
	require.Equal(t, inspect.Waiting, w.get(3).State)
}

package subscribe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// The first call may have failed after it stored the pause, and before it notified the engine. So a
// repeated call notifies the engine again.
func TestARepeatedPause_NotifiesTheEngineAgain(t *testing.T) {
	notified := 0
	w := newWorld(t, subscribe.Options{Changed: func(domain.CursorID) { notified++ }})
	s, err := w.Create(t.Context(), w.draft())
	require.NoError(t, err)
	for i := range 2 {
		_, err = w.SetPaused(t.Context(), w.owner, s.ID, true)
		require.NoError(t, err)
		require.Equal(t, i+1, notified)
	}
}

package embedded_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

const childFolder = "EMBEDDED_BUS_CHILD"

func serveUntilKilled(dir string) { os.Exit(1) }

func TestWhatIsSentIsReceivedOnceAndGoneWhenCompleted(t *testing.T) {
	n := open(t, embedded.Options{AutoCreate: true})
	c := connect(t, n)
	send(t, c, "q", "a", "b")
	r, err := c.NewReceiverForQueue("q", nil)
	require.NoError(t, err)
	for _, want := range []string{"a", "b"} {
		got, err := r.ReceiveMessages(t.Context(), 1, nil)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, want, string(got[0].Body))
		require.NoError(t, r.CompleteMessage(t.Context(), got[0], nil))
	}
	left, err := r.PeekMessages(t.Context(), 10, nil)
	require.NoError(t, err)
	require.Empty(t, left)
}

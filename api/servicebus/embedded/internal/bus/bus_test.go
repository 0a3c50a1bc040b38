package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessagesComeInTheOrderTheyWereSentAndOnce(t *testing.T) {
	w := newWorld(t)
	w.create(Entity{Path: "q"})
	w.send("q", text("a"), text("b"))
	w.send("Q", text("c"))
	c := w.receiver("q", PeekLock)
	got := c.take(10)
	require.Equal(t, []string{"a", "b", "c"}, bodies(got))
	require.EqualValues(t, 2, got[1].SequenceNumber)
	require.Equal(t, start, got[0].EnqueuedAt)
	require.Empty(t, c.take(10), "locked")
	c.settle(Settlement{}, got...)
	require.Zero(t, w.counts("q"))
	w.restart()
	require.Empty(t, w.receiver("q", PeekLock).take(10))
}

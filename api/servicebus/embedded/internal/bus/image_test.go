package bus

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// TestFile_HoldsConfirmedWritesAtAnyTime copies the file of a running bus after every confirmed operation, and opens
// the copy. The copy simulates the file after a kill -9.
func TestFile_HoldsConfirmedWritesAtAnyTime(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	store, err := disk.Open(dir)
	require.NoError(t, err)
	w := &busFixture{t: t, clock: newClock(), store: store}
	w.openBus()
	for _, e := range modelled {
		w.createEntity(e)
	}
	for i := range 12 {
		w.someStep(random, i)
		want := w.describeAll(w.bus)
		image := t.TempDir()
		file, err := os.ReadFile(filepath.Join(dir, disk.FileName))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(image, disk.FileName), file, 0o600))
		copied, err := disk.Open(image)
		require.NoError(t, err)
		b, err := Open(copied, Options{Codec: jsonCodec{}, Clock: w.clock})
		require.NoError(t, err)
		require.Equal(t, want, w.describeAll(b), "after step %d", i)
		require.NoError(t, b.Close())
		require.NoError(t, copied.Close())
	}
	require.NoError(t, w.bus.Close())
	require.NoError(t, store.Close())
}

func (w *busFixture) someStep(random *rand.Rand, i int) {
	switch i % 3 {
	case 0:
		scheduled := inSession("a", fmt.Sprint("later ", i))
		scheduled.ScheduledFor = w.clock.Now().Add(oddSchedule)
		w.sendBatch("sessions", inSession("b", fmt.Sprint(i)), inSession("a", fmt.Sprint(i)), scheduled)
		w.sendBatch("t", messageWith(fmt.Sprint(i), map[string]any{"n": i}))
	case 1:
		c, err := w.acceptSession("sessions", SessionRequest{})
		require.NoError(w.t, err)
		c.settleDeliveries(Settlement{Outcome: Outcome(random.IntN(5)), Properties: map[string]any{"step": i}, Reason: "why"}, c.takeOne())
		c.Close()
		all := w.newReceiver("t/subscriptions/all", PeekLock)
		all.settleDeliveries(Settlement{Outcome: Outcome(random.IntN(5))}, all.takeOne())
		all.Close()
	case 2:
		w.advanceTime(time.Duration(random.IntN(20)) * time.Second)
	}
}

// describeAll returns all messages and session states of a bus as text.
func (w *busFixture) describeAll(b *Bus) string {
	var s strings.Builder
	for _, e := range b.Entities() {
		counts, err := b.Counts(e.Path)
		require.NoError(w.t, err)
		fmt.Fprintln(&s, e, counts)
		for _, end := range []string{"", "/$DeadLetterQueue", "/$Transfer/$DeadLetterQueue"} {
			if e.Kind == Topic {
				continue
			}
			messages, err := b.Peek(e.Path+end, PeekOptions{Max: 1000})
			require.NoError(w.t, err)
			s.WriteString(describeMessages(messages))
		}
		if e.Kind == Subscription {
			rules, err := b.Rules(e.Path)
			require.NoError(w.t, err)
			fmt.Fprintln(&s, rules)
		}
	}
	return s.String()
}

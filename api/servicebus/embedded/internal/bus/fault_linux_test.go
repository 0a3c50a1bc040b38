package bus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/disk/disktest"
)

func TestFailingDisk_EndsServiceAndLosesNoConfirmedWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		device string
		want   error
	}{
		"it is full":       {disktest.Full, disk.ErrFull},
		"it does not sync": {disktest.Unsyncable, disk.ErrBroken},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := &disktest.Device{}
			store, err := disk.OpenOn(dir, files)
			require.NoError(t, err)
			w := &busFixture{t: t, clock: newClock(), store: store}
			w.openBus()
			w.createEntity(Entity{Path: "q"})
			w.sendBatch("q", textMessage("kept"), textMessage("locked"))
			c := w.newReceiver("q", PeekLock)
			got := c.takeDeliveries(2)
			w.settleDeliveries("q", Settlement{Outcome: Abandon}, got[0])

			files.Become(t, tc.device)
			err = awaitDone(func(done func(error)) { w.bus.Settle("q", tokensOf(got[1:]), Settlement{}, done) })
			require.ErrorIs(t, err, tc.want)
			require.ErrorIs(t, err, disk.ErrBroken)
			require.ErrorIs(t, awaitDone(func(done func(error)) { w.bus.Send("q", []Message{textMessage("late")}, done) }), disk.ErrBroken)
			require.NoError(t, w.bus.Close())
			require.ErrorIs(t, c.lost[0], disk.ErrBroken)
			_ = store.Close() // the file was replaced, so an error is expected

			w.store, err = disk.Open(dir)
			require.NoError(t, err)
			w.openBus()
			again := w.newReceiver("q", PeekLock).takeDeliveries(9)
			require.Equal(t, []string{"kept", "locked"}, bodiesOf(again))
			require.EqualValues(t, 1, again[0].DeliveryCount)
			require.NoError(t, w.bus.Close())
			require.NoError(t, w.store.Close())
		})
	}
}

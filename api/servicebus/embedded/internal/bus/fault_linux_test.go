package bus

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A brokenDisk can put another file behind the descriptor of the store. What
// is mapped into memory stays, as on a disk that fails to write.
type brokenDisk struct {
	disk.System
	t      *testing.T
	opened *os.File
}

func (d *brokenDisk) OpenFile(name string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, flag, mode)
	d.opened = f
	return f, err
}

func (d *brokenDisk) become(device string) {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	require.NoError(d.t, err)
	require.NoError(d.t, syscall.Dup3(int(f.Fd()), int(d.opened.Fd()), syscall.O_CLOEXEC))
	require.NoError(d.t, f.Close())
}

func TestADiskThatFailsEndsServiceAndLosesNothingThatWasAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		device string
		want   error
	}{
		"it is full":       {"/dev/full", disk.ErrFull},
		"it does not sync": {"/dev/null", disk.ErrBroken}, // takes every byte, and fsync fails
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := &brokenDisk{t: t}
			store, err := disk.OpenOn(dir, files)
			require.NoError(t, err)
			w := &world{t: t, clock: newClock(), store: store}
			w.open()
			w.create(Entity{Path: "q"})
			w.send("q", text("kept"), text("locked"))
			c := w.receiver("q", PeekLock)
			got := c.take(2)
			w.settle("q", Settlement{Outcome: Abandon}, got[0])

			files.become(tc.device)
			err = answer(func(done func(error)) { w.bus.Settle("q", tokensOf(got[1:]), Settlement{}, done) })
			require.ErrorIs(t, err, tc.want)
			require.ErrorIs(t, err, disk.ErrBroken)
			require.ErrorIs(t, answer(func(done func(error)) { w.bus.Send("q", []Message{text("late")}, done) }), disk.ErrBroken)
			require.NoError(t, w.bus.Close())
			require.ErrorIs(t, c.lost[0], disk.ErrBroken)
			_ = store.Close() // what it closes is not its file any more

			w.store, err = disk.Open(dir)
			require.NoError(t, err)
			w.open()
			again := w.receiver("q", PeekLock).take(9)
			require.Equal(t, []string{"kept", "locked"}, bodies(again))
			require.EqualValues(t, 1, again[0].DeliveryCount)
			require.NoError(t, w.bus.Close())
			require.NoError(t, w.store.Close())
		})
	}
}

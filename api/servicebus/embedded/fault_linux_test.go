package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/disk/disktest"
)

func TestFailingDisk_AcceptsNothingAndLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ device, says string }{
		"it is full":       {disktest.Full, "the disk is full"},
		"it does not sync": {disktest.Unsyncable, "invalid argument"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := &disktest.Device{}
			n, err := embedded.Open(embedded.Options{Dir: dir, FileSystem: files, Entities: queues("q")})
			require.NoError(t, err)
			c, err := azservicebus.NewClientFromConnectionString(n.ConnectionString(""), withoutRetries(n))
			require.NoError(t, err)
			s, err := c.NewSender("q", nil)
			require.NoError(t, err)
			require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("a")}, nil))

			files.Become(t, tc.device)
			err = s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("b")}, nil)
			require.ErrorContains(t, err, "amqp:internal-error")
			require.ErrorContains(t, err, tc.says)
			err = s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("c")}, nil)
			require.Error(t, err, "nothing more is accepted")
			require.ErrorIs(t, <-n.Broken(), disk.ErrBroken, "the owner is notified")
			_ = c.Close(context.Background())
			_ = n.Close() // the file was replaced, so an error is expected

			image, err := os.ReadFile(filepath.Join(dir, disk.FileName))
			require.NoError(t, err)
			other := t.TempDir() // the first namespace locked the file that was replaced
			require.NoError(t, os.WriteFile(filepath.Join(other, disk.FileName), image, 0o600))
			c = newClient(t, openNamespace(t, embedded.Options{Dir: other}))
			r, err := c.NewReceiverForQueue("q", nil)
			require.NoError(t, err)
			require.Equal(t, "a", string(receiveOne(t, r).Body))
			left, err := r.PeekMessages(t.Context(), 10, nil)
			require.NoError(t, err)
			require.Len(t, left, 1, "what was not accepted is not there")
		})
	}
}

package node

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// openFolder opens a node whose data is in folder.
func openFolder(t *testing.T, folder string) *Node {
	t.Helper()
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.AdminListen, cfg.BusListen, cfg.BlobListen = folder, "127.0.0.1:0", "", "", ""
	n, err := Open(t.Context(), cfg, Options{})
	require.NoError(t, err)
	return n
}

// A hookedBuffer is a buffer that calls do before the first byte is written.
type hookedBuffer struct {
	bytes.Buffer
	do func()
}

func (h *hookedBuffer) Write(p []byte) (int, error) {
	if h.do != nil {
		h.do()
		h.do = nil
	}
	return h.Buffer.Write(p)
}

func readAll(t *testing.T, c repository.Content, name string, length int) string {
	t.Helper()
	r, err := c.Open(t.Context(), repository.Section{Object: name, Length: int64(length)})
	require.NoError(t, err, name)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return string(text)
}

// busQueue returns the name of a bus queue from which the hub does not receive.
func busQueue() string {
	cfg := config.Default()
	return cfg.Queues()[cfg.Groups().Origins()[0]].Dequeue
}

// Contents that were deleted during a backup must be in the archive.
func TestBackup_HasContentsDeletedDuringTheBackup(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	n := openFolder(t, folder)
	for _, name := range []string{"kept/a", "deleted/b", "gone/c/d", "gone/c/e"} {
		require.NoError(t, n.store.content.Put(t.Context(), name, strings.NewReader("own "+name)))
		require.NoError(t, n.store.exchange.Put(t.Context(), name, strings.NewReader("shared "+name)))
	}
	client, err := n.domains.bus.open()
	require.NoError(t, err)
	sender, err := client.NewSender(busQueue(), nil)
	require.NoError(t, err)
	require.NoError(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("message")}, nil))
	require.NoError(t, client.Close(t.Context()))

	archive := &hookedBuffer{do: func() {
		for _, store := range []repository.Content{n.store.content, n.store.exchange} {
			require.NoError(t, store.Delete(t.Context(), "deleted/b"))
			_, err := store.Open(t.Context(), repository.Section{Object: "deleted/b", Length: 1})
			require.Equal(t, domain.NotFound, domain.KindOf(err), "it is gone at once")
		}
		require.NoError(t, n.store.content.DeleteFolder(t.Context(), "gone"))
		require.NoError(t, n.store.content.Put(t.Context(), "later/f", strings.NewReader("later")))
	}}
	require.NoError(t, n.backUp(t.Context(), archive))
	for _, name := range []string{"content", "exchange"} {
		require.NoDirExists(t, filepath.Join(folder, name, "+held"))
	}
	require.NoError(t, n.store.content.Delete(t.Context(), "kept/a"), "nothing is held after the release")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "content", "+held", "0"), 0o700), "what a kill leaves")
	require.NoError(t, n.Close())
	require.NoError(t, openFolder(t, folder).Close())
	require.NoDirExists(t, filepath.Join(folder, "content", "+held"))

	restored := filepath.Join(t.TempDir(), "restored")
	_, err = Restore(t.Context(), restored, bytes.NewReader(archive.Bytes()), nil, nil)
	require.NoError(t, err)
	n = openFolder(t, restored)
	defer func() { require.NoError(t, n.Close()) }()
	for _, name := range []string{"kept/a", "deleted/b", "gone/c/d", "gone/c/e"} {
		require.Equal(t, "own "+name, readAll(t, n.store.content, name, len("own "+name)))
		require.Equal(t, "shared "+name, readAll(t, n.store.exchange, name, len("shared "+name)))
	}
	client, err = n.domains.bus.open()
	require.NoError(t, err)
	receiver, err := client.NewReceiverForQueue(busQueue(), nil)
	require.NoError(t, err)
	messages, err := receiver.ReceiveMessages(t.Context(), 1, nil)
	require.NoError(t, err)
	require.Equal(t, "message", string(messages[0].Body))
	require.NoError(t, client.Close(t.Context()))
}

func TestBackup_ThatFailsReleasesDeletedContents(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	n := openFolder(t, folder)
	defer func() { require.NoError(t, n.Close()) }()
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		require.ErrorIs(t, n.backUp(ctx, &hookedBuffer{do: cancel}), context.Canceled)
		require.NoDirExists(t, filepath.Join(folder, "content", "+held"))
	}
	require.NoError(t, n.backUp(t.Context(), io.Discard))
}

func TestBackup_OfAzureAndOfMemoryIsRefused(t *testing.T) {
	for setting, want := range map[string]string{
		"MESSAGEHUB_COSMOS_ENDPOINT=https://a.documents.azure.com/":      "continuous backup of Cosmos DB",
		"MESSAGEHUB_BLOB_ENDPOINT=https://a.blob.core.windows.net":       "soft delete of the blobs",
		"MESSAGEHUB_SERVICEBUS_NAMESPACE=example.servicebus.windows.net": "messagehub check --repair",
		"MESSAGEHUB_IN_MEMORY=true":                                      "stores nothing",
	} {
		cfg, err := config.Load(config.Inputs{Environ: []string{setting}})
		require.NoError(t, err)
		require.ErrorContains(t, Backup(t.Context(), &cfg, "v1", io.Discard, nil), want)
		require.Contains(t, backupObstacle(&cfg), want)
	}
}
